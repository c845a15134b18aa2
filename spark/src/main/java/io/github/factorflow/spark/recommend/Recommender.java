package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.run.Attempts;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.LocalProperty;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.version.Spark;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.ml.recommendation.ALSModel;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * The recommendations of an ALSModel, searched by workers: Spark's schema and lists, and computed when an
 * action needs them, as Spark's are. Each executor gets a part of the rows and all candidates. Lists end in a
 * shuffle, so further actions on the same DataFrame do not search again.
 *
 * @param model one with Spark's own methods, which are the fallback
 */
public record Recommender(ALSModel model) {
  private static final Logger log = LoggerFactory.getLogger(Recommender.class);
  /** Most entries of a list that FactorFlow's kernels search. */
  private static final int MOST = 1000;
  private static final int MAXIMUM_RANK = 4096;
  /** For an application and its settings, whether a worker can be started. */
  private static final Map<String, Boolean> startable = new ConcurrentHashMap<>();

  public Dataset<Row> forAllUsers(int n) {
    return lists(model.userFactors(), model.itemFactors(), n, () -> model.recommendForAllUsers(n));
  }

  public Dataset<Row> forAllItems(int n) {
    return lists(model.itemFactors(), model.userFactors(), n, () -> model.recommendForAllItems(n));
  }

  public Dataset<Row> forUserSubset(Dataset<?> users, int n) {
    Supplier<Dataset<Row>> own = () -> model.recommendForUserSubset(users, n);
    return lists(subset(model.userFactors(), users, model.getUserCol()), model.itemFactors(), n, own);
  }

  public Dataset<Row> forItemSubset(Dataset<?> items, int n) {
    Supplier<Dataset<Row>> own = () -> model.recommendForItemSubset(items, n);
    return lists(subset(model.itemFactors(), items, model.getItemCol()), model.userFactors(), n, own);
  }

  private static Dataset<Row> subset(Dataset<Row> factors, Dataset<?> chosen, String column) {
    Dataset<Row> ids = chosen.select(column);
    return factors.join(ids, factors.col("id").equalTo(ids.col(column)), "left_semi");
  }

  private Dataset<Row> lists(
    Dataset<Row> rows,
    Dataset<Row> candidates,
    int n,
    Supplier<Dataset<Row>> sparks
  ) {
    SparkContext context = rows.sparkSession().sparkContext();
    Settings settings = Settings.of(context.getConf());
    boolean fits =
      n >= 1 && n <= MOST && model.rank() <= MAXIMUM_RANK && hasIntegerIds(rows) && hasIntegerIds(candidates);
    Placement placement = fits && settings.recommend() ? placement(context, settings) : null;
    if (placement == null) return sparks.get();
    StructType schema = sparks.get().schema();
    int parts = parts(context);
    JavaRDD<byte[]> all = streams(candidates)
      .flatMapToPair(stream -> copies(stream, parts))
      .partitionBy(new HashPartitioner(parts))
      .values();
    JavaRDD<byte[]> own = streams(rows);
    int partitions = Math.max(1, own.getNumPartitions());
    SearchTask task = new SearchTask(placement, model.rank(), n);
    JavaRDD<Lists> found = wholeExecutors(all.zipPartitions(spread(own, parts), task), context);
    return Spark.frame(rows.sparkSession(), spread(found, partitions).flatMap(Lists::rows).rdd(), schema);
  }

  private static boolean hasIntegerIds(Dataset<Row> factors) {
    return factors.schema().apply("id").dataType().equals(DataTypes.IntegerType);
  }

  private JavaRDD<byte[]> streams(Dataset<Row> factors) {
    JavaRDD<InternalRow> rows = Spark.rows(factors.select("id", "features")).toJavaRDD();
    return rows.mapPartitions(new FactorStreams(model.rank()));
  }

  /** Executors at this time; in local mode one. */
  private static int parts(SparkContext context) {
    return context.isLocal() ? 1 : (int) Math.max(1, Executors.running(context).count());
  }

  private static Iterator<Tuple2<Integer, byte[]>> copies(byte[] stream, int parts) {
    return IntStream.range(0, parts)
      .mapToObj(part -> new Tuple2<>(part, stream))
      .iterator();
  }

  /** Distributes elements over partitions in turn, by a shuffle. */
  private static <T> JavaRDD<T> spread(JavaRDD<T> elements, int partitions) {
    JavaPairRDD<Integer, T> numbered = JavaPairRDD.fromJavaRDD(
      elements.mapPartitionsWithIndex((partition, each) -> numbered(partition, each), false)
    );
    return numbered.partitionBy(new HashPartitioner(partitions)).values();
  }

  private static <T> Iterator<Tuple2<Integer, T>> numbered(int first, Iterator<T> elements) {
    int[] number = { first };
    return Scala.java(
      Scala.scala(elements).map(element -> new Tuple2<>(number[0]++ & Integer.MAX_VALUE, element))
    );
  }

  private static <T> JavaRDD<T> wholeExecutors(JavaRDD<T> work, SparkContext context) {
    return Placement.withProfile(work.rdd(), Placement.wholeExecutor(context)).toJavaRDD();
  }

  /**
   * The placement of workers; null, with one warning, if none can be started. For each application and its
   * settings a worker is started once, to know: recommendations are computed later, when Spark's own could
   * not replace them any more.
   */
  private static Placement placement(SparkContext context, Settings settings) {
    String key = context.applicationId() + " " + settings;
    if (Boolean.FALSE.equals(startable.get(key))) return null;
    try {
      Placement placement = Placement.of(context, settings);
      if (startable.get(key) == null) Attempts.clearly(() -> start(context, placement));
      startable.put(key, true);
      return placement;
    } catch (FactorFlowException failure) {
      startable.put(key, false);
      log.warn("FactorFlow: Spark's own ALSModel recommends, since {}", failure.getMessage());
      return null;
    }
  }

  private static List<Integer> start(SparkContext context, Placement placement) {
    try (LocalProperty job = LocalProperty.description(context, "FactorFlow: start of a worker")) {
      JavaRDD<Integer> one = JavaSparkContext.fromSparkContext(context)
        .parallelize(List.of(1), 1)
        .map(element -> {
          placement.start(TaskContext.get(), SearchTask.opening(), frame -> {}).close();
          return element;
        });
      return wholeExecutors(one, context).collect();
    }
  }
}
