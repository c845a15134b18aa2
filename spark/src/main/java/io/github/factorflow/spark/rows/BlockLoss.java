package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * The contribution of a block's rows to the loss, as a worker measured it after their solve: of users the
 * errors of their ratings and their penalty, of items their penalty alone. Values that were not measured are
 * NaN.
 *
 * <p>A class, since Kryo as in Spark 3.5 cannot copy records.
 */
final class BlockLoss implements Serializable {

  private static final long serialVersionUID = 1;
  static final BlockLoss NONE = new BlockLoss(0, 0, 0, 0);
  static final BlockLoss UNKNOWN = new BlockLoss(Double.NaN, 0, Double.NaN, Double.NaN);
  /** Sum of the squared errors of explicit ratings. */
  private final double squared;
  /** The number of ratings in it. */
  private final long count;
  /** Sum over the rated pairs of implicit data. */
  private final double observed;
  private final double penalty;

  private BlockLoss(double squared, long count, double observed, double penalty) {
    this.squared = squared;
    this.count = count;
    this.observed = observed;
    this.penalty = penalty;
  }

  /** From the answer to the request {@code loss}. */
  static BlockLoss of(JsonNode answer) {
    if (answer.has("missing")) return UNKNOWN;
    return new BlockLoss(
      answer.path("squared").asDouble(),
      answer.path("count").asLong(),
      answer.path("observed").asDouble(),
      answer.path("penalty").asDouble()
    );
  }

  BlockLoss plus(BlockLoss other) {
    return new BlockLoss(
      squared + other.squared,
      count + other.count,
      observed + other.observed,
      penalty + other.penalty
    );
  }

  /** The loss of both sides. {@code pairs}: with implicit data the sum over all pairs, else 0. */
  double with(BlockLoss items, double pairs) {
    return squared + observed + penalty + items.penalty + pairs;
  }

  /** The training RMSE; NaN for implicit data. */
  double rmse() {
    return count == 0 ? Double.NaN : Math.sqrt(squared / count);
  }
}
