package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.run.ClassTagOf;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.version.Scala;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.resource.ResourceProfile;
import scala.Function1;
import scala.Tuple2;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction4;

/**
 * The blocks of ratings of both sides, and the tasks on them. Partitions 0 .. hosts - 1 have the users'
 * rows, the next ones the items' rows.
 */
final class Blocks {

  private final SparkContext context;
  private final JavaRDD<RatingBatch> users;
  private final JavaRDD<RatingBatch> items;
  private final int hosts;
  private final ResourceProfile profile;
  private final Executors executors;
  private final BlockPlaces places;

  Blocks(SparkContext context, JavaRDD<RatingBatch> rated, int hosts, Executors executors) {
    this.executors = executors;
    places = new BlockPlaces(context, hosts);
    this.context = context;
    this.hosts = hosts;
    users = part(rated, 0, hosts);
    items = part(rated, hosts, 2 * hosts);
    profile = Placement.wholeExecutor(context);
  }

  SparkContext context() {
    return context;
  }

  int hosts() {
    return hosts;
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
    return placed(
      of(task).mapPartitionsWithIndex(
        (block, ratings) ->
          one(
            task.run(
              block,
              ratings,
              () -> streams(fixed, block),
              () -> fixed.value().get(block).factors,
              () -> previous.value().get(block).factors
            )
          ),
        false
      )
    );
  }

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
    var solved = of(task)
      .rdd()
      .zipPartitions(
        fixed.rdd(),
        local.rdd(),
        previous.rdd(),
        false,
        new Zipped(task),
        new ClassTagOf<byte[]>(byte[].class).get(),
        new ClassTagOf<SolvedBlock>(SolvedBlock.class).get(),
        new ClassTagOf<SolvedBlock>(SolvedBlock.class).get(),
        new ClassTagOf<SolvedBlock>(SolvedBlock.class).get()
      );
    return placed(solved.toJavaRDD());
  }

  /**
   * A solved side by a shuffle: partition p has the rows that block p of the other side needs, or the shares
   * of its equations in the order of the blocks that formed them, so that their sum has the same bits at
   * every attempt. A task on an excluded executor has no worker, and sends whole blocks.
   */
  JavaRDD<byte[]> outgoing(RowTask task, JavaRDD<SolvedBlock> solved) {
    ClassTagOf<Tuple2<Integer, byte[]>> tag = new ClassTagOf<>(Tuple2.class);
    var rows = of(task)
      .rdd()
      .zipPartitions(
        solved.rdd(),
        false,
        new Sending(task, executors, hosts),
        new ClassTagOf<SolvedBlock>(SolvedBlock.class).get(),
        tag.get()
      );
    var sent = JavaPairRDD.fromRDD(
      placed(rows, tag.get()),
      // Spark's serializer for arrays of numbers is chosen by these tags. Java's copies them byte by byte.
      keys(),
      new ClassTagOf<byte[]>(byte[].class).get()
    );
    // A key modulo hosts is the block that needs the stream.
    HashPartitioner byBlock = new HashPartitioner(hosts);
    if (!task.sendsEquations()) return sent.partitionBy(byBlock).values();
    return sent.repartitionAndSortWithinPartitions(byBlock).values();
  }

  /**
   * The results of all blocks. If some executors are excluded, a job runs only as many blocks as there are
   * others, so that no block has to wait and is then sent to an excluded one.
   */
  List<SolvedBlock> collect(JavaRDD<SolvedBlock> solved) {
    if (!executors.areLimited()) return new ArrayList<>(solved.collect());
    List<SolvedBlock> all = new ArrayList<>();
    int places = executors.places().size();
    for (int from = 0; from < hosts; from += places) {
      int[] some = IntStream.range(from, Math.min(hosts, from + places)).toArray();
      for (List<SolvedBlock> part : solved.collectPartitions(some)) all.addAll(part);
    }
    return all;
  }

  /** As many partitions as blocks, without rows. */
  <T> JavaRDD<T> empty() {
    return users.mapPartitions(ratings -> Collections.<T>emptyIterator());
  }

  private JavaRDD<RatingBatch> of(RowTask task) {
    return task.side() == Side.USERS ? users : items;
  }

  private JavaRDD<SolvedBlock> placed(JavaRDD<SolvedBlock> solved) {
    return placed(solved.rdd(), new ClassTagOf<SolvedBlock>(SolvedBlock.class).get()).toJavaRDD();
  }

  /** The same RDD, whose tasks take whole executors that run workers. */
  private <T> RDD<T> placed(RDD<T> work, ClassTag<T> tag) {
    Executors preferred = executors.areLimited() ? executors : places.now();
    RDD<T> preferring = preferred.prefer(work, tag);
    return profile == null ? preferring : preferring.withResources(profile);
  }

  private static JavaRDD<RatingBatch> part(JavaRDD<RatingBatch> rated, int from, int to) {
    Function1<Object, Object> inside = (Function1<Object, Object> & Serializable) partition ->
      (Integer) partition >= from && (Integer) partition < to;
    return PartitionPruningRDD.create(rated.rdd(), inside).toJavaRDD();
  }

  private static Iterator<byte[]> streams(Broadcast<List<SolvedBlock>> side, int except) {
    return side
      .value()
      .stream()
      .filter(block -> block.block != except)
      .flatMap(block -> block.factors.stream())
      .iterator();
  }

  @SuppressWarnings("unchecked")
  private static ClassTag<Integer> keys() {
    return (ClassTag<Integer>) (ClassTag<?>) ClassTag$.MODULE$.Int();
  }

  private static <T> Iterator<T> one(T value) {
    return List.of(value).iterator();
  }

  private static final class Zipped
    extends AbstractFunction4<
      scala.collection.Iterator<RatingBatch>,
      scala.collection.Iterator<byte[]>,
      scala.collection.Iterator<SolvedBlock>,
      scala.collection.Iterator<SolvedBlock>,
      scala.collection.Iterator<SolvedBlock>
    >
    implements Serializable
  {

    private static final long serialVersionUID = 1;
    private final RowTask task;

    Zipped(RowTask task) {
      this.task = task;
    }

    @Override
    public scala.collection.Iterator<SolvedBlock> apply(
      scala.collection.Iterator<RatingBatch> ratings,
      scala.collection.Iterator<byte[]> fixed,
      scala.collection.Iterator<SolvedBlock> local,
      scala.collection.Iterator<SolvedBlock> previous
    ) {
      Supplier<List<byte[]>> former = () -> previous.next().factors;
      SolvedBlock solved = task.run(
        TaskContext.getPartitionId(),
        Scala.java(ratings),
        () -> Scala.java(fixed),
        () -> local.next().factors,
        former
      );
      return Scala.scala(one(solved));
    }
  }
}
