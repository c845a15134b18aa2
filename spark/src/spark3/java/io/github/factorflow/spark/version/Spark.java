package io.github.factorflow.spark.version;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;

/** Spark 3.5's form of the interfaces that differ between the versions. */
public final class Spark {

  static final String SERIES = "3.5.";
  static final String SCALA = "2.12.";

  private Spark() {}

  public static RDD<InternalRow> rows(Dataset<Row> dataset) {
    return dataset.queryExecution().toRdd();
  }

  public static Dataset<Row> frame(SparkSession session, RDD<InternalRow> rows, StructType schema) {
    return session.internalCreateDataFrame(rows, schema, false);
  }
}
