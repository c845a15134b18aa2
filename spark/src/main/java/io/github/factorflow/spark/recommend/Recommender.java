package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.version.Spark;
import io.github.factorflow.spark.worker.Launch;
import java.util.Iterator;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.ml.recommendation.ALSModel;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;

/**
 * The recommendations of an ALSModel, searched by workers: Spark's schema and lists, and computed when an
 * action needs them, as Spark's are. Each executor gets a part of the rows and all candidates. Lists end in a
 * shuffle, so further actions on the same DataFrame do not search again.
 */
public final class Recommender {

  /** Most entries of a list that FactorFlow's kernels search. */
  private static final int MOST = 1000;
  private static final int MAXIMUM_RANK = 4096;
  private final ALSModel model;

  /** @param model one with Spark's own methods, which are the fallback */
  public Recommender(ALSModel model) {
    this.model = model;
  }

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
    Placement placement = fits && settings.recommend() ? Probe.placement(context, settings) : null;
    if (placement == null) return sparks.get();
    StructType schema = sparks.get().schema();
    int parts = parts(context);
    JavaRDD<byte[]> all = streams(candidates)
      .flatMapToPair(stream -> copies(stream, parts))
      .partitionBy(new HashPartitioner(parts))
      .values();
    JavaRDD<byte[]> own = streams(rows);
    int partitions = Math.max(1, own.getNumPartitions());
    SearchTask task = new SearchTask(Launch.of(settings), placement, model.rank(), n);
    JavaRDD<Lists> found = placed(all.zipPartitions(spread(own, parts), task), context);
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
    if (context.isLocal()) return 1;
    long executors = Scala.java(context.statusStore().executorList(true))
      .stream()
      .filter(one -> !one.id().equals("driver"))
      .count();
    return (int) Math.max(1, executors);
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
    return new Iterator<>() {
      private int number = first;

      @Override
      public boolean hasNext() {
        return elements.hasNext();
      }

      @Override
      public Tuple2<Integer, T> next() {
        return new Tuple2<>(number++ & Integer.MAX_VALUE, elements.next());
      }
    };
  }

  private static JavaRDD<Lists> placed(JavaRDD<Lists> found, SparkContext context) {
    ResourceProfile profile = Placement.wholeExecutor(context);
    return profile == null ? found : found.withResources(profile);
  }
}
