package io.github.factorflow.spark.rows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.broadcast.Broadcast;

/**
 * A side's factors after a half-iteration.
 *
 * @param blocks one partition for each block
 * @param copies of all blocks on the executors, or null where they travel by a shuffle
 * @param gram the side's Gram matrix, rank² float64; empty without implicit data
 */
record SolvedSide(
  int version,
  JavaRDD<SolvedBlock> blocks,
  Broadcast<List<SolvedBlock>> copies,
  byte[] gram
) {
  /**
   * The sum of the blocks' matrices, in the order of blocks: it does not depend on the hosts that solved
   * them.
   */
  static byte[] gram(List<SolvedBlock> blocks) {
    double[] sum = null;
    for (SolvedBlock block : blocks) {
      if (block.gram == null) continue;
      var part = ByteBuffer.wrap(block.gram).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer();
      if (sum == null) sum = new double[part.remaining()];
      for (int at = 0; at < sum.length; at++) sum[at] += part.get(at);
    }
    if (sum == null) return new byte[0];
    ByteBuffer bytes = ByteBuffer.allocate(8 * sum.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asDoubleBuffer().put(sum);
    return bytes.array();
  }
}
