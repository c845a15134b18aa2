package io.github.factorflow.spark.version;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;
import scala.reflect.ClassTag$;

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

  /** An RDD with one partition for each pair of an item and its preferred location. */
  public static RDD<String> at(SparkContext context, List<Tuple2<String, String>> items) {
    List<Tuple2<String, scala.collection.Seq<String>>> pairs = new ArrayList<>();
    for (Tuple2<String, String> item : items)
      pairs.add(new Tuple2<>(item._1(), Scala.scala(List.of(item._2()))));
    return context.makeRDD(Scala.scala(pairs), ClassTag$.MODULE$.<String>apply(String.class));
  }
}
