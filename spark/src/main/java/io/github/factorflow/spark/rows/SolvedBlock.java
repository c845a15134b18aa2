package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.factorflow.spark.worker.FactorFlowException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/**
 * The result of a task for one block of rows: the factors that a worker sent, and its answer.
 *
 * <p>A class of texts and bytes, since Kryo as in Spark 3.5 cannot copy records.
 */
final class SolvedBlock implements Serializable {

  private static final long serialVersionUID = 1;
  private static final ObjectMapper json = new ObjectMapper().disable(
    DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES
  );
  final int block;
  /** Arrow streams of (id, features). */
  final List<byte[]> factors;
  /** The block's part of the Gram matrix, rank² float64; null without implicit data. */
  final byte[] gram;
  /** JSON: the answer to the request {@code build} or {@code loss}. */
  private final String answer;
  /** The reason why a worker refused the work, or null. */
  private final String refusal;

  private SolvedBlock(int block, List<byte[]> factors, byte[] gram, String answer, String refusal) {
    this.block = block;
    // Kryo cannot copy Java's unmodifiable lists.
    this.factors = new ArrayList<>(factors);
    this.gram = gram;
    this.answer = answer;
    this.refusal = refusal;
  }

  /** A block without ratings. */
  static SolvedBlock empty(int block) {
    return loaded(block, "{\"sends\":[],\"bytes\":{\"equations\":{}}}");
  }

  static SolvedBlock loaded(int block, String answer) {
    return new SolvedBlock(block, List.of(), null, answer, null);
  }

  static SolvedBlock solved(int block, List<byte[]> factors, byte[] gram, String loss) {
    return new SolvedBlock(block, factors, gram, loss, null);
  }

  static SolvedBlock refused(int block, String reason) {
    return new SolvedBlock(block, List.of(), null, "{}", reason);
  }

  /** The block without its factors, for the driver if the factors stay on the executors. */
  SolvedBlock summary() {
    return new SolvedBlock(block, List.of(), gram, answer, refusal);
  }

  /** Throws the reason if a worker refused a block. */
  static void requireAll(List<SolvedBlock> blocks) {
    for (SolvedBlock block : blocks) if (block.refusal != null) throw new FactorFlowException(block.refusal);
  }

  /**
   * The facts about a loaded block, as its worker reported them.
   *
   * @param rows solved rows; {@code columns}: rows of the other side that occur in the block
   * @param squares the sum of the ratings' squares
   * @param sends for each block of the other side, the number of this block's rows that it is sent
   */
  record Facts(long rows, long ratings, double squares, long columns, long[] sends, Bytes bytes) {}

  /**
   * Bytes of a worker with a block.
   *
   * @param kept from loading to the end; {@code loading}, {@code solving}: in addition while it is loaded or
   *     solved
   * @param process of the worker without any block
   * @param equations in addition where equations are exchanged; null where a worker cannot form them
   */
  record Bytes(long kept, long loading, long solving, long process, Equations equations) {}

  /**
   * Bytes of a block from which equations are formed; {@code forming}, {@code summing}: in addition while
   * they are formed or summed.
   */
  record Equations(long kept, long forming, long summing) {}

  Facts facts() {
    return read(Facts.class);
  }

  /**
   * The contribution of a block's rows to the loss, as a worker measured it after their solve: of users the
   * errors of their ratings and their penalty, of items their penalty alone. Values that were not measured
   * are NaN.
   *
   * @param squared the sum of the squared errors of {@code count} explicit ratings
   * @param observed the sum over the rated pairs of implicit data
   * @param missing what the worker lacked to measure it, or null
   */
  record Loss(double squared, long count, double observed, double penalty, String missing) {
    static final Loss NONE = new Loss(0, 0, 0, 0, null);
    private static final Loss UNKNOWN = new Loss(Double.NaN, 0, Double.NaN, Double.NaN, null);

    Loss plus(Loss other) {
      return new Loss(
        squared + other.squared,
        count + other.count,
        observed + other.observed,
        penalty + other.penalty,
        null
      );
    }

    /** The loss of both sides. {@code pairs}: with implicit data the sum over all pairs, else 0. */
    double with(Loss items, double pairs) {
      return squared + observed + penalty + items.penalty + pairs;
    }

    /** The training RMSE; NaN for implicit data. */
    double rmse() {
      return count == 0 ? Double.NaN : Math.sqrt(squared / count);
    }
  }

  /** The block's part of the loss; zeros where the task did not solve it. */
  Loss loss() {
    Loss loss = read(Loss.class);
    return loss.missing == null ? loss : Loss.UNKNOWN;
  }

  private <T> T read(Class<T> type) {
    try {
      return json.readValue(answer, type);
    } catch (JsonProcessingException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
