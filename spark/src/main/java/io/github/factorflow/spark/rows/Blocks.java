package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.OneHost;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.version.Scala;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.resource.ResourceProfile;
import scala.Function2;
import scala.Function4;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The blocks of ratings of both sides, and the tasks on them. Partitions 0 .. hosts - 1 have the users'
 * rows, the next ones the items' rows.
 */
final class Blocks {

  private static final ClassTag<SolvedBlock> SOLVED = Scala.tag(SolvedBlock.class);
  private static final ClassTag<byte[]> STREAM = Scala.tag(byte[].class);
  private final SparkContext context;
  private final JavaRDD<RatingBatch> users;
  private final JavaRDD<RatingBatch> items;
  private final int hosts;
  private final ResourceProfile profile;
  private final Executors executors;
  private final BlockPlaces places;

  Blocks(SparkContext context, JavaRDD<RatingBatch> rated, int hosts, Executors executors) {
    this.executors = executors;
    this.context = context;
    this.hosts = hosts;
    places = new BlockPlaces(context, hosts);
    users = OneHost.range(rated, 0, hosts);
    items = OneHost.range(rated, hosts, 2 * hosts);
    profile = Placement.wholeExecutor(context);
  }

  SparkContext context() {
    return context;
  }

  /** True if no executor is excluded. */
  boolean haveWorkersEverywhere() {
    return !executors.areLimited();
  }

  List<SolvedBlock> load(RowTask task) {
    return collect(withCopies(task, null, null));
  }

  /** Tasks that read the fixed side, and their own previous factors, from copies of all blocks. */
  JavaRDD<SolvedBlock> withCopies(
    RowTask task,
    Broadcast<List<SolvedBlock>> fixed,
    Broadcast<List<SolvedBlock>> previous
  ) {
    var solved = of(task).mapPartitionsWithIndex(
      (block, ratings) -> {
        RowTask.Given given = new RowTask.Given(
          ratings,
          () -> others(fixed.value(), block),
          () -> fixed.value().get(block).factors,
          () -> previous.value().get(block).factors
        );
        return List.of(task.run(block, given)).iterator();
      },
      false
    );
    return placed(solved.rdd(), SOLVED).toJavaRDD();
  }

  private static java.util.Iterator<byte[]> others(List<SolvedBlock> side, int except) {
    return side
      .stream()
      .filter(block -> block.block != except)
      .flatMap(block -> block.factors.stream())
      .iterator();
  }

  /** Joins partitions of ratings, streams, local and previous blocks. */
  private interface Solving
    extends
      Function4<
        Iterator<RatingBatch>,
        Iterator<byte[]>,
        Iterator<SolvedBlock>,
        Iterator<SolvedBlock>,
        Iterator<SolvedBlock>
      >,
      Serializable {}

  /**
   * Tasks that read the fixed side, and their own previous factors, from partitions that are joined with the
   * partitions of ratings. {@code local}: the fixed side's blocks, of which each task reads the one of its
   * number if its executor's worker has not solved that block.
   */
  JavaRDD<SolvedBlock> withPartitions(
    RowTask task,
    JavaRDD<byte[]> fixed,
    JavaRDD<SolvedBlock> local,
    JavaRDD<SolvedBlock> previous
  ) {
    Solving solving = (ratings, streams, ofLocal, ofPrevious) -> {
      RowTask.Given given = new RowTask.Given(
        Scala.java(ratings),
        () -> Scala.java(streams),
        () -> ofLocal.next().factors,
        () -> ofPrevious.next().factors
      );
      SolvedBlock solved = task.run(TaskContext.getPartitionId(), given);
      return Scala.scala(List.of(solved).iterator());
    };
    RDD<SolvedBlock> solved = of(task)
      .rdd()
      .zipPartitions(
        fixed.rdd(),
        local.rdd(),
        previous.rdd(),
        false,
        solving,
        STREAM,
        SOLVED,
        SOLVED,
        SOLVED
      );
    return placed(solved, SOLVED).toJavaRDD();
  }

  /** Joins partitions of ratings and of solved blocks. */
  private interface Sending
    extends
      Function2<Iterator<RatingBatch>, Iterator<SolvedBlock>, Iterator<Tuple2<Integer, byte[]>>>,
      Serializable {}

  /**
   * A solved side by a shuffle: partition p has the rows that block p of the other side needs, or the shares
   * of its equations in the order of the blocks that formed them, so that their sum has the same bits at
   * every attempt. A task on an excluded executor has no worker, and sends whole blocks.
   */
  JavaRDD<byte[]> outgoing(RowTask task, JavaRDD<SolvedBlock> solved) {
    Executors allowed = executors;
    int blocks = hosts;
    Sending sending = (ratings, block) -> {
      List<SolvedBlock> read = new ArrayList<>();
      Supplier<List<byte[]>> factors = () -> {
        if (read.isEmpty()) read.add(block.next());
        return read.get(0).factors;
      };
      int from = TaskContext.getPartitionId();
      return Scala.scala(
        allowed.includeThis()
          ? task.send(from, Scala.java(ratings), factors)
          : toAll(factors.get(), from, blocks)
      );
    };
    ClassTag<Tuple2<Integer, byte[]>> tag = Scala.tag(Tuple2.class);
    var streams = of(task).rdd().zipPartitions(solved.rdd(), false, sending, SOLVED, tag);
    // Spark's serializer for arrays of numbers is chosen by these tags. Java's copies them byte by byte.
    var sent = JavaPairRDD.fromRDD(placed(streams, tag), keys(), STREAM);
    // A key modulo hosts is the block that needs the stream.
    HashPartitioner byBlock = new HashPartitioner(hosts);
    if (!task.sendsEquations()) return sent.partitionBy(byBlock).values();
    return sent.repartitionAndSortWithinPartitions(byBlock).values();
  }

  private static java.util.Iterator<Tuple2<Integer, byte[]>> toAll(List<byte[]> streams, int from, int blocks) {
    return streams
      .stream()
      .flatMap(stream ->
        IntStream.range(0, blocks)
          .filter(to -> to != from)
          .mapToObj(to -> new Tuple2<>(from * blocks + to, stream))
      )
      .iterator();
  }

  /**
   * The results of all blocks, in their order. If some executors are excluded, a job runs only as many blocks
   * as there are others, so that no block has to wait and is then sent to an excluded one. Throws the reason
   * if a worker refused a block.
   */
  List<SolvedBlock> collect(JavaRDD<SolvedBlock> solved) {
    List<SolvedBlock> all = new ArrayList<>();
    int places = executors.areLimited() ? executors.places().size() : hosts;
    for (int from = 0; from < hosts; from += places) {
      int[] some = IntStream.range(from, Math.min(hosts, from + places)).toArray();
      for (List<SolvedBlock> part : solved.collectPartitions(some)) all.addAll(part);
    }
    SolvedBlock.requireAll(all);
    all.sort(Comparator.comparingInt(block -> block.block));
    return all;
  }

  /** As many partitions as blocks, without rows. */
  <T> JavaRDD<T> empty() {
    return users.mapPartitions(ratings -> Collections.<T>emptyIterator());
  }

  private JavaRDD<RatingBatch> of(RowTask task) {
    return task.side() == RowTask.Side.USERS ? users : items;
  }

  /** The same RDD, whose tasks take whole executors that run workers. */
  private <T> RDD<T> placed(RDD<T> work, ClassTag<T> tag) {
    Executors preferred = executors.areLimited() ? executors : places.now();
    return Placement.withProfile(preferred.prefer(work, tag), profile);
  }

  @SuppressWarnings("unchecked")
  private static ClassTag<Integer> keys() {
    return (ClassTag<Integer>) (ClassTag<?>) ClassTag$.MODULE$.Int();
  }
}
