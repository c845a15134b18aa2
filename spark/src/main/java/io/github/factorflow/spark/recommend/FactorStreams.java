package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;

/** Encodes a partition's rows (id: int, features: array of float) as Arrow streams of about a megabyte. */
record FactorStreams(int rank) implements FlatMapFunction<Iterator<InternalRow>, byte[]> {
  @Override
  public Iterator<byte[]> call(Iterator<InternalRow> rows) {
    FactorBlock.Builder block = new FactorBlock.Builder(rank);
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public byte[] next() {
        while (rows.hasNext()) if (add(block, rows.next())) break;
        return block.take().encode();
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
