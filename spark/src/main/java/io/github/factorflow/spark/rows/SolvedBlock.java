package io.github.factorflow.spark.rows;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** The result of a task for one block of rows: the factors that a worker sent, and sums over the block. */
final class SolvedBlock implements Serializable {

  private static final long serialVersionUID = 1;
  final int block;
  /** Arrow streams of (id, features). */
  final List<byte[]> factors;
  final Sums sums;
  /** The block's part of the Gram matrix, rank² float64; null without implicit data. */
  final byte[] gram;
  /** The block's part of the loss; zeros where the task did not solve it. */
  final BlockLoss loss;
  /** The facts about the block that was loaded. */
  final BlockNeeds needs;
  /** The reason why a worker refused the work, or null. */
  final String refusal;

  private SolvedBlock(
    int block,
    List<byte[]> factors,
    Sums sums,
    byte[] gram,
    BlockLoss loss,
    BlockNeeds needs,
    String refusal
  ) {
    this.block = block;
    // Kryo cannot copy Java's unmodifiable lists.
    this.factors = new ArrayList<>(factors);
    this.sums = sums;
    this.gram = gram;
    this.loss = loss;
    this.needs = needs;
    this.refusal = refusal;
  }

  static SolvedBlock empty(int block) {
    return new SolvedBlock(block, List.of(), Sums.NONE, null, BlockLoss.NONE, BlockNeeds.NONE, null);
  }

  static SolvedBlock loaded(int block, Sums sums, BlockNeeds needs) {
    return new SolvedBlock(block, List.of(), sums, null, BlockLoss.NONE, needs, null);
  }

  static SolvedBlock solved(int block, List<byte[]> factors, byte[] gram, BlockLoss loss) {
    return new SolvedBlock(block, factors, Sums.NONE, gram, loss, BlockNeeds.NONE, null);
  }

  static SolvedBlock refused(int block, String reason) {
    return new SolvedBlock(block, List.of(), Sums.NONE, null, BlockLoss.NONE, BlockNeeds.NONE, reason);
  }

  /** The block without its factors, for the driver if the factors stay on the executors. */
  SolvedBlock summary() {
    return new SolvedBlock(block, List.of(), sums, gram, loss, needs, refusal);
  }
}
