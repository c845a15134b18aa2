package io.github.factorflow.spark.data;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Queue;
import scala.Tuple2;

/**
 * Divides a side's rows among partitions by id, as Spark's model does (id modulo partitions), in blocks of
 * about a megabyte. Partition p of this side has the number {@code first + p}.
 */
public final class FactorScatter {

  private static final int FLOATS = 1 << 18;
  private final int rank;
  private final int first;
  private final int[][] ids;
  private final float[][] features;
  private final int[] rows;
  private final Queue<Tuple2<Integer, FactorBlock>> out;

  public FactorScatter(int rank, int first, int partitions, ArrayDeque<Tuple2<Integer, FactorBlock>> out) {
    this.rank = rank;
    this.first = first;
    this.out = out;
    ids = new int[partitions][0];
    features = new float[partitions][0];
    rows = new int[partitions];
  }

  public void add(FactorBlock block) {
    int most = Math.max(64, FLOATS / rank);
    for (int row = 0; row < block.rows(); row++) {
      int partition = Math.floorMod(block.ids[row], rows.length);
      int at = rows[partition]++;
      if (at == ids[partition].length) {
        int larger = Math.min(most, Math.max(64, 2 * at));
        ids[partition] = Arrays.copyOf(ids[partition], larger);
        features[partition] = Arrays.copyOf(features[partition], larger * rank);
      }
      ids[partition][at] = block.ids[row];
      System.arraycopy(block.features, row * rank, features[partition], at * rank, rank);
      if (rows[partition] == most) flush(partition);
    }
  }

  public void end() {
    for (int partition = 0; partition < rows.length; partition++) if (rows[partition] > 0) flush(partition);
  }

  private void flush(int partition) {
    int count = rows[partition];
    out.add(
      new Tuple2<>(
        first + partition,
        new FactorBlock(
          rank,
          Arrays.copyOf(ids[partition], count),
          Arrays.copyOf(features[partition], count * rank)
        )
      )
    );
    rows[partition] = 0;
  }
}
