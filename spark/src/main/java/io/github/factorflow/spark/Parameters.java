package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import org.apache.spark.ml.recommendation.ALS;
import org.apache.spark.storage.StorageLevel;

/**
 * ALS's parameters as values that are sent to the executors.
 *
 * @param more FactorFlow's own parameters: a JSON object
 */
public record Parameters(
  int rank,
  int maxIter,
  double regParam,
  boolean implicitPrefs,
  double alpha,
  boolean nonnegative,
  long seed,
  int userBlocks,
  int itemBlocks,
  int checkpointInterval,
  StorageLevel intermediateLevel,
  StorageLevel finalLevel,
  ObjectNode more
) implements Serializable {
  private static final String SGD = "sgd";

  /**
   * Values of {@code more} replace Spark's: {@code auto} as regParam or alpha. Throws
   * IllegalArgumentException for parameters of Spark's ALS that SGD does not have.
   */
  static Parameters of(ALS als, ObjectNode more) {
    if (more.path("algorithm").asText().equals(SGD)) {
      if (als.getImplicitPrefs()) throw notOfSgd("implicitPrefs");
      if (als.getNonnegative()) throw notOfSgd("nonnegative");
    }
    return new Parameters(
      als.getRank(),
      als.getMaxIter(),
      als.getRegParam(),
      als.getImplicitPrefs(),
      als.getAlpha(),
      als.getNonnegative(),
      als.getSeed(),
      als.getNumUserBlocks(),
      als.getNumItemBlocks(),
      als.getCheckpointInterval(),
      StorageLevel.fromString(als.getIntermediateStorageLevel()),
      StorageLevel.fromString(als.getFinalStorageLevel()),
      more
    );
  }

  private static IllegalArgumentException notOfSgd(String name) {
    return new IllegalArgumentException(
      name + " cannot be used with algorithm sgd, which trains on explicit ratings alone, with factors of any sign"
    );
  }

  public String algorithm() {
    return more.path("algorithm").asText("als");
  }

  public boolean isSgd() {
    return algorithm().equals(SGD);
  }

  /** True if one host starts from the factors that Spark's ALS draws, and not from those of {@code start}. */
  public boolean startsAsSpark() {
    return !isSgd() && !more.has("start");
  }

  /** Numbers of a row of factors: with biases, two more than the rank. */
  public int features() {
    return rank + (more.path("biases").asBoolean() ? 2 : 0);
  }

  /**
   * The parameters under FactorFlow's names. A worker's defaults for all others give Spark's model: λ n, no
   * biases, Spark's Gaussian initial factors.
   */
  public ObjectNode toJson() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("rank", rank).put("maxIter", maxIter).put("regParam", regParam).put("seed", foldedSeed());
    if (!isSgd()) json.put("nonnegative", nonnegative).put("implicitPrefs", implicitPrefs);
    if (implicitPrefs) json.put("alpha", alpha);
    json.setAll(more);
    json.remove("algorithm");
    // SGD does not need Spark's λ if it is auto, SGD's default, or if both sides have a λ of their own.
    boolean both = json.has("regParamUsers") && json.has("regParamItems");
    if (isSgd() && (both || json.path("regParam").asText().equals("auto"))) json.remove("regParam");
    return json;
  }

  /**
   * FactorFlow's seeds have 32 bits: both halves of Spark's seed are combined, so that small seeds do not
   * change.
   */
  private long foldedSeed() {
    return (seed ^ (seed >>> 32)) & 0xffffffffL;
  }
}
