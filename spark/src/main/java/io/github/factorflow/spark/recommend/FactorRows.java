package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;

/** Collects a partition's rows (id: int, features: array of float) in blocks of about a megabyte. */
record FactorRows(int rank) implements FlatMapFunction<Iterator<InternalRow>, FactorBlock> {
  @Override
  public Iterator<FactorBlock> call(Iterator<InternalRow> rows) {
    FactorBlock.Builder block = new FactorBlock.Builder(rank);
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public FactorBlock next() {
        while (rows.hasNext()) if (add(block, rows.next())) break;
        return block.take();
      }
    };
  }

  /** Returns true if the block is full. */
  private boolean add(FactorBlock.Builder block, InternalRow row) {
    int id = row.getInt(0);
    float[] values = row.getArray(1).toFloatArray();
    if (values.length == rank) return block.add(id, values, 0);
    throw new FactorFlowException(
      "The factors of id " + id + " are " + values.length + ", and the model's rank is " + rank
    );
  }
}
