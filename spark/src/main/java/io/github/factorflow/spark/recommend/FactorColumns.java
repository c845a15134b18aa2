package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.data.FactorBlock;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A side's factors by feature: columns[k][i] is feature k of the row with the id ids[i]. Ids ascend. Loops
 * over all rows of one feature are compiled to vector instructions.
 */
record FactorColumns(int[] ids, float[][] columns) {
  static FactorColumns of(int rank, List<FactorBlock> blocks) {
    int rows = blocks.stream().mapToInt(FactorBlock::rows).sum();
    // an id in the upper half, the row's number in the lower half
    long[] order = new long[rows];
    int number = 0;
    for (FactorBlock block : blocks) for (int id : block.ids) order[number] = ((long) id << 32) | number++;
    Arrays.sort(order);
    int[] ids = new int[rows];
    int[] places = new int[rows];
    for (int place = 0; place < rows; place++) {
      ids[place] = (int) (order[place] >> 32);
      places[(int) order[place]] = place;
    }
    float[][] columns = new float[rank][rows];
    number = 0;
    for (FactorBlock block : blocks) {
      for (int row = 0; row < block.rows(); row++, number++) {
        for (int k = 0; k < rank; k++) columns[k][places[number]] = block.features[row * rank + k];
      }
    }
    return new FactorColumns(ids, columns);
  }

  /** The places of those of the given ids that the side has; of all for null. */
  int[] positions(int[] given) {
    if (given == null) return IntStream.range(0, ids.length).toArray();
    return Arrays.stream(given).map(id -> Arrays.binarySearch(ids, id)).filter(place -> place >= 0).toArray();
  }

  /**
   * For each of the rows at {@code positions} the n candidates with the largest products, best first; equal
   * ones by their ids. Products that are not numbers are left out.
   */
  Lists best(int[] positions, FactorColumns candidates, int n) {
    int most = Math.min(n, candidates.ids.length);
    if (most == 0) return new Lists(new int[0], new int[0], new int[0], new float[0]);
    int[] found = new int[positions.length];
    int[] ends = new int[positions.length];
    int[] items = new int[positions.length * most];
    float[] scores = new float[positions.length * most];
    float[] products = new float[candidates.ids.length];
    int end = 0;
    for (int list = 0; list < positions.length; list++) {
      Arrays.fill(products, 0);
      for (int k = 0; k < columns.length; k++) {
        addMultiple(products, columns[k][positions[list]], candidates.columns[k]);
      }
      found[list] = ids[positions[list]];
      end += best(products, candidates.ids, most, items, scores, end);
      ends[list] = end;
    }
    return new Lists(found, ends, items, scores);
  }

  private static void addMultiple(float[] sums, float factor, float[] values) {
    for (int at = 0; at < sums.length; at++) sums[at] += factor * values[at];
  }

  /** Writes the best products and their ids from {@code start} on; returns their number, at most {@code most}. */
  private static int best(float[] products, int[] ids, int most, int[] items, float[] scores, int start) {
    int count = 0;
    for (int candidate = 0; candidate < products.length; candidate++) {
      float score = products[candidate];
      boolean isFull = count == most;
      if (Float.isNaN(score) || (isFull && score <= scores[start + count - 1])) continue;
      int at = start + (isFull ? count - 1 : count++);
      for (; at > start && score > scores[at - 1]; at--) {
        scores[at] = scores[at - 1];
        items[at] = items[at - 1];
      }
      scores[at] = score;
      items[at] = ids[candidate];
    }
    return count;
  }
}
