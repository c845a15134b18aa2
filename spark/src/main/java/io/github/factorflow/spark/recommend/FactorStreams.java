package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.FactorCodec;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;

/** Encodes a partition's rows (id: int, features: array of float) as Arrow streams of about a megabyte. */
final class FactorStreams implements FlatMapFunction<Iterator<InternalRow>, byte[]> {

  private static final long serialVersionUID = 1;
  private static final int FLOATS = 1 << 18;
  private final int rank;

  FactorStreams(int rank) {
    this.rank = rank;
  }

  @Override
  public Iterator<byte[]> call(Iterator<InternalRow> rows) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return rows.hasNext();
      }

      @Override
      public byte[] next() {
        return encoded(rows);
      }
    };
  }

  private byte[] encoded(Iterator<InternalRow> rows) {
    int most = Math.max(64, FLOATS / rank);
    int[] ids = new int[most];
    float[] features = new float[most * rank];
    int count = 0;
    while (count < most && rows.hasNext()) {
      InternalRow row = rows.next();
      float[] values = row.getArray(1).toFloatArray();
      if (values.length != rank) throw new FactorFlowException(
        "The factors of id " + row.getInt(0) + " are " + values.length + ", and the model's rank is " + rank
      );
      ids[count] = row.getInt(0);
      System.arraycopy(values, 0, features, count++ * rank, rank);
    }
    try {
      return FactorCodec.encode(
        new FactorBlock(rank, Arrays.copyOf(ids, count), Arrays.copyOf(features, count * rank))
      );
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
