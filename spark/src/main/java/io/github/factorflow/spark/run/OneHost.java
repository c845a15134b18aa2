package io.github.factorflow.spark.run;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.Ratings;
import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.data.RatingEncoder;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.PartitionPruningRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.storage.StorageLevel;
import scala.Function1;
import scala.Tuple2;
import scala.reflect.ClassTag;

/**
 * Training on one host. All ratings are sent by a shuffle to one task, whose worker trains. Its factors are
 * sent by a shuffle to the partitions of the model. Because the training stage ends in a shuffle, Spark runs
 * it again if its executor is lost, and no side passes through the driver.
 */
public final class OneHost {

  private OneHost() {}

  public static Factors train(
    Ratings ratings,
    Parameters parameters,
    Settings settings,
    Executors executors,
    Progress progress
  ) {
    SparkContext context = ratings.context();
    JavaRDD<RatingBatch> batches = ratings
      .javaRows()
      .mapPartitionsToPair(new RatingEncoder(1))
      .partitionBy(new HashPartitioner(1))
      .values();
    Checkpoints checkpoints = Checkpoints.of(context, parameters);
    TrainTask task = new TrainTask(Placement.of(context, settings), parameters, progress, checkpoints);
    int userBlocks = parameters.userBlocks();
    int partitions = userBlocks + parameters.itemBlocks();
    JavaRDD<FactorBlock> factors = JavaPairRDD.fromRDD(
      inOneTask(context, executors, batches.rdd(), task),
      Scala.<Integer>tag(Integer.class),
      Scala.<FactorBlock>tag(FactorBlock.class)
    )
      .partitionBy(new HashPartitioner(partitions))
      .values();
    JavaRDD<FactorBlock> users = kept(range(factors, 0, userBlocks), "userFactors", parameters);
    JavaRDD<FactorBlock> items = kept(range(factors, userBlocks, partitions), "itemFactors", parameters);
    String algorithm = parameters.algorithm().toUpperCase(Locale.ROOT);
    String text =
      "FactorFlow " + algorithm + ": " + parameters.maxIter() + " iterations at rank " + parameters.rank() +
      " on one host";
    try (LocalProperty description = LocalProperty.description(context, text)) {
      List<Long> rows = users.union(items).mapPartitions(OneHost::count).collect();
      List<String> refused = progress.refusals().value();
      if (!refused.isEmpty()) throw new FactorFlowException(refused.get(refused.size() - 1));
      if (rows.stream().mapToLong(Long::longValue).sum() == 0) throw ratings.noRatings();
    } catch (RuntimeException | Error failure) {
      users.unpersist(false);
      items.unpersist(false);
      throw failure;
    } finally {
      if (checkpoints != null) checkpoints.remove();
    }
    return Factors.of(ratings.session(), users, items);
  }

  /**
   * A barrier stage with one task, of which Spark never runs a second copy at the same time. Clusters with
   * dynamic allocation have no barriers.
   */
  private static RDD<Tuple2<Integer, FactorBlock>> inOneTask(
    SparkContext context,
    Executors executors,
    RDD<RatingBatch> batches,
    TrainTask task
  ) {
    ClassTag<Tuple2<Integer, FactorBlock>> tag = Scala.tag(Tuple2.class);
    boolean barriers = !context.getConf().getBoolean("spark.dynamicAllocation.enabled", false);
    RDD<Tuple2<Integer, FactorBlock>> trained = barriers
      ? batches.barrier().mapPartitions(task, false, tag)
      : batches.mapPartitions(task, false, tag);
    return Placement.withProfile(executors.prefer(trained, tag), Placement.wholeExecutor(context));
  }

  /** As Spark's ALS leaves them: by name, and persisted at the final storage level. */
  private static JavaRDD<FactorBlock> kept(JavaRDD<FactorBlock> side, String name, Parameters parameters) {
    StorageLevel level = parameters.finalLevel();
    return level.equals(StorageLevel.NONE()) ? side.setName(name) : side.setName(name).persist(level);
  }

  /** The partitions from {@code from} to before {@code to}. */
  public static <T> JavaRDD<T> range(JavaRDD<T> all, int from, int to) {
    Function1<Object, Object> inside = (Function1<Object, Object> & Serializable) partition ->
      (Integer) partition >= from && (Integer) partition < to;
    return PartitionPruningRDD.create(all.rdd(), inside).toJavaRDD();
  }

  private static Iterator<Long> count(Iterator<FactorBlock> blocks) {
    long rows = 0;
    while (blocks.hasNext()) rows += blocks.next().rows();
    return List.of(rows).iterator();
  }
}
