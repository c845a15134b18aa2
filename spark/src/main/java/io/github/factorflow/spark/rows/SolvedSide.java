package io.github.factorflow.spark.rows;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.broadcast.Broadcast;

/**
 * A side's factors after a half-iteration.
 *
 * @param blocks one partition for each block
 * @param copies of all blocks on the executors, or null where they travel by a shuffle
 * @param gram the side's Gram matrix, rank² float64; empty without implicit data
 * @param loss the sum of its blocks' parts of the loss
 */
record SolvedSide(
  int version,
  JavaRDD<SolvedBlock> blocks,
  Broadcast<List<SolvedBlock>> copies,
  byte[] gram,
  SolvedBlock.Loss loss
) {
  /**
   * Sums are added {@code inOrder} of blocks, so they do not depend on the hosts that solved them.
   */
  static SolvedSide of(
    int version,
    JavaRDD<SolvedBlock> blocks,
    Broadcast<List<SolvedBlock>> copies,
    List<SolvedBlock> inOrder
  ) {
    SolvedBlock.Loss loss = SolvedBlock.Loss.NONE;
    for (SolvedBlock block : inOrder) loss = loss.plus(block.loss());
    return new SolvedSide(version, blocks, copies, gram(inOrder), loss);
  }

  static byte[] gram(List<SolvedBlock> blocks) {
    double[] sum = null;
    for (SolvedBlock block : blocks) {
      if (block.gram == null) continue;
      DoubleBuffer part = doubles(block.gram);
      if (sum == null) sum = new double[part.remaining()];
      for (int at = 0; at < sum.length; at++) sum[at] += part.get(at);
    }
    if (sum == null) return new byte[0];
    ByteBuffer bytes = ByteBuffer.allocate(8 * sum.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asDoubleBuffer().put(sum);
    return bytes.array();
  }

  /** The loss after an iteration, whose users are this side. */
  double loss(SolvedSide items) {
    return loss.with(items.loss, product(gram, items.gram));
  }

  /** The sum of (xᵀθ)² over all pairs of implicit data, by both Gram matrices; 0 for empty ones. */
  private static double product(byte[] one, byte[] other) {
    DoubleBuffer ones = doubles(one);
    DoubleBuffer others = doubles(other);
    double sum = 0;
    for (int at = 0; at < ones.limit(); at++) sum += ones.get(at) * others.get(at);
    return sum;
  }

  private static DoubleBuffer doubles(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer();
  }
}
