package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.data.FactorBlock;
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
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * The recommendations of an ALSModel, computed when an action needs them, as Spark's are: a small request from
 * the factors in the driver's memory, others by workers. Each executor gets a part of the rows and all
 * candidates. Lists end in a shuffle, so further actions on the same DataFrame do not search again.
 *
 * @param model one with Spark's own methods, which are the fallback
 */
public record Recommender(ALSModel model, CollectedSide users, CollectedSide items) {
  private static final Logger log = LoggerFactory.getLogger(Recommender.class);
  /** Most entries of a list that FactorFlow's kernels search. */
  private static final int MOST = 1000;
  private static final int MAXIMUM_RANK = 4096;
  /** Most multiplications of a small request: a second of one core; the start of a worker takes as long. */
  private static final long SMALL = 1_000_000_000;
  /** Most entries of a small request's lists. */
  private static final int SMALL_ENTRIES = 1 << 20;
  /** For an application and its settings, whether a worker can be started. */
  private static final Map<String, Boolean> startable = new ConcurrentHashMap<>();

  public Dataset<Row> forAllUsers(int n) {
    return lists(true, null, n, () -> model.recommendForAllUsers(n));
  }

  public Dataset<Row> forAllItems(int n) {
    return lists(false, null, n, () -> model.recommendForAllItems(n));
  }

  public Dataset<Row> forUserSubset(Dataset<?> chosen, int n) {
    return lists(true, chosen.select(rowColumn(true)), n, () -> model.recommendForUserSubset(chosen, n));
  }

  public Dataset<Row> forItemSubset(Dataset<?> chosen, int n) {
    return lists(false, chosen.select(rowColumn(false)), n, () -> model.recommendForItemSubset(chosen, n));
  }

  /**
   * @param ofUsers true for lists of items for users, false for lists of users for items
   * @param chosen ids in the first column; null for all
   */
  private Dataset<Row> lists(boolean ofUsers, Dataset<Row> chosen, int n, Supplier<Dataset<Row>> sparks) {
    SparkSession session = model.userFactors().sparkSession();
    SparkContext context = session.sparkContext();
    Settings settings = Settings.of(context.getConf());
    boolean fits =
      n >= 1 && n <= MOST && model.rank() <= MAXIMUM_RANK && hasIntegerIds(model.userFactors()) &&
      hasIntegerIds(model.itemFactors());
    if (!fits || settings.recommend() == Settings.Recommend.FALSE) return sparks.get();
    Dataset<Row> side = ofUsers ? model.userFactors() : model.itemFactors();
    Dataset<Row> rows = chosen == null
      ? side
      : side.join(chosen, side.col("id").equalTo(chosen.col(rowColumn(ofUsers))), "left_semi");
    Deferred answer = new Deferred(context, () -> {
      boolean maySmall = settings.recommend() != Settings.Recommend.WORKERS;
      Dataset<Row> ids = chosen == null || ChosenIds.has(chosen) ? chosen : rows.select("id");
      Lists small = maySmall ? ofCollected(ofUsers, ids, n, context) : null;
      if (small != null) return ofLists(
        JavaSparkContext.fromSparkContext(context).parallelize(List.of(small), 1)
      );
      Placement placement = placement(context, settings);
      if (placement == null) return Spark.rows(sparks.get());
      return ofLists(byWorkers(rows, ofUsers ? model.itemFactors() : model.userFactors(), n, placement));
    });
    return Spark.frame(session, answer, schema(ofUsers));
  }

  private String rowColumn(boolean ofUsers) {
    return ofUsers ? model.getUserCol() : model.getItemCol();
  }

  private StructType schema(boolean ofUsers) {
    StructType entry = new StructType()
      .add(rowColumn(!ofUsers), DataTypes.IntegerType)
      .add("rating", DataTypes.FloatType);
    return new StructType()
      .add(rowColumn(ofUsers), DataTypes.IntegerType, false)
      .add("recommendations", DataTypes.createArrayType(entry));
  }

  private static RDD<InternalRow> ofLists(JavaRDD<Lists> lists) {
    return lists.flatMap(Lists::rows).rdd();
  }

  /** The lists of a small request; null for a larger one. {@code chosen}: ids; null for all. */
  private Lists ofCollected(boolean ofUsers, Dataset<Row> chosen, int n, SparkContext context) {
    CollectedSide rows = ofUsers ? users : items;
    CollectedSide candidates = ofUsers ? items : users;
    long bytes = 4L * (model.rank() + 1) * (rows.rows() + candidates.rows());
    if (bytes > Placement.mostInDriver(context.getConf())) return null;
    long products = Math.max(1, model.rank() * candidates.rows());
    long most = Math.min(SMALL / products, SMALL_ENTRIES / n);
    if (chosen == null && rows.rows() > most) return null;
    int[] ids = chosen == null ? null : ChosenIds.of(chosen, most);
    if (chosen != null && ids == null) return null;
    try (LocalProperty job = LocalProperty.description(context, "FactorFlow: factors to the driver")) {
      return rows.columns().best(rows.columns().positions(ids), candidates.columns(), n);
    }
  }

  private JavaRDD<Lists> byWorkers(Dataset<Row> rows, Dataset<Row> candidates, int n, Placement placement) {
    SparkContext context = rows.sparkSession().sparkContext();
    int parts = parts(context);
    JavaRDD<byte[]> all = streams(candidates)
      .flatMapToPair(stream -> copies(stream, parts))
      .partitionBy(new HashPartitioner(parts))
      .values();
    JavaRDD<byte[]> own = streams(rows);
    int partitions = Math.max(1, own.getNumPartitions());
    SearchTask task = new SearchTask(placement, model.rank(), n);
    return spread(wholeExecutors(all.zipPartitions(spread(own, parts), task), context), partitions);
  }

  private static boolean hasIntegerIds(Dataset<Row> factors) {
    return factors.schema().apply("id").dataType().equals(DataTypes.IntegerType);
  }

  private JavaRDD<byte[]> streams(Dataset<Row> factors) {
    JavaRDD<InternalRow> rows = Spark.rows(factors.select("id", "features")).toJavaRDD();
    return rows.mapPartitions(new FactorRows(model.rank())).map(FactorBlock::encode);
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
   * settings a worker is started once, to know.
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
