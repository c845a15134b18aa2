package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.version.Spark;
import java.lang.ref.SoftReference;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * A side's factors, which the driver collects when a small request first needs them. They are forgotten when
 * the driver is short of memory, and collected again when they are needed again.
 */
public final class CollectedSide {

  private final Dataset<Row> factors;
  private final int rank;
  private long rows = -1;
  private SoftReference<FactorColumns> held = new SoftReference<>(null);

  public CollectedSide(Dataset<Row> factors, int rank) {
    this.factors = factors;
    this.rank = rank;
  }

  synchronized long rows() {
    if (rows < 0) rows = Spark.rows(factors.select("id")).count();
    return rows;
  }

  synchronized FactorColumns columns() {
    FactorColumns known = held.get();
    if (known != null) return known;
    JavaRDD<InternalRow> all = Spark.rows(factors.select("id", "features")).toJavaRDD();
    known = FactorColumns.of(rank, all.mapPartitions(new FactorRows(rank)).collect());
    held = new SoftReference<>(known);
    return known;
  }
}
