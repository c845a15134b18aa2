package io.github.factorflow.spark;

import io.github.factorflow.spark.version.Spark;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.ml.recommendation.ALS;
import org.apache.spark.ml.util.DatasetUtils$;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;

/**
 * The rows (user: int, item: int, rating: float) of a data set. Each row is checked while it is read, by
 * Spark's own expressions and with its messages. Rows are Spark's internal rows, so no Java object is
 * created for each.
 */
public record Ratings(SparkSession session, RDD<InternalRow> rows) {
  static Ratings of(ALS als, Dataset<?> dataset) {
    Column users = als.checkIntegers(dataset, als.getUserCol());
    Column items = als.checkIntegers(dataset, als.getItemCol());
    Column ratings = als.getRatingCol().isEmpty()
      ? functions.lit(1.0f)
      : DatasetUtils$.MODULE$.checkNonNanValues(als.getRatingCol(), "Ratings").cast(DataTypes.FloatType);
    Dataset<Row> selected = dataset.select(users, items, ratings);
    return new Ratings(selected.sparkSession(), Spark.rows(selected));
  }

  public SparkContext context() {
    return session.sparkContext();
  }

  public JavaRDD<InternalRow> javaRows() {
    return rows.toJavaRDD();
  }

  /** Spark's message for a data set without rows. */
  public IllegalArgumentException noRatings() {
    return new IllegalArgumentException("requirement failed: No ratings available from " + rows);
  }
}
