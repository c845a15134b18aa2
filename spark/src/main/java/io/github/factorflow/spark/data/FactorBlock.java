package io.github.factorflow.spark.data;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.stream.IntStream;
import scala.Tuple2;

/**
 * Some rows of a side's factors: row i has the id ids[i] and features[i rank] .. features[(i + 1) rank - 1].
 */
public final class FactorBlock implements Serializable {

  private static final long serialVersionUID = 1;
  public final int rank;
  public final int[] ids;
  public final float[] features;

  public FactorBlock(int rank, int[] ids, float[] features) {
    this.rank = rank;
    this.ids = ids;
    this.features = features;
  }

  public int rows() {
    return ids.length;
  }

  /** Rows as Spark's model holds them. */
  public Iterator<Tuple2<Object, float[]>> tuples() {
    return IntStream.range(0, ids.length)
      .mapToObj(row ->
        new Tuple2<Object, float[]>(ids[row], Arrays.copyOfRange(features, row * rank, (row + 1) * rank))
      )
      .iterator();
  }
}
