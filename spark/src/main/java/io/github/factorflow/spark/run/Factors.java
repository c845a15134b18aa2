package io.github.factorflow.spark.run;

import io.github.factorflow.spark.data.FactorBlock;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/** Both sides' factors in the form of Spark's ALSModel: (id: int, features: array of float). */
public record Factors(Dataset<Row> users, Dataset<Row> items) {
  public static Factors of(SparkSession session, JavaRDD<FactorBlock> users, JavaRDD<FactorBlock> items) {
    return new Factors(rows(session, users), rows(session, items));
  }

  private static Dataset<Row> rows(SparkSession session, JavaRDD<FactorBlock> blocks) {
    JavaRDD<Tuple2<Object, float[]>> tuples = blocks.flatMap(FactorBlock::tuples);
    var types = session.implicits();
    var encoder = Encoders.tuple(types.newIntEncoder(), types.newFloatArrayEncoder());
    return session.createDataset(tuples.rdd(), encoder).toDF("id", "features");
  }
}
