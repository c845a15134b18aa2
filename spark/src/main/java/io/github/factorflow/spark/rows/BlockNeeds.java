package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * The facts about a loaded block from which the exchange is planned, as its worker reported them.
 *
 * @param columns rows of the other side that occur in the block
 * @param sends for each block of the other side, the number of this block's rows that it needs
 * @param kept bytes of the worker for the block from loading to the end
 * @param loading bytes that loading takes in addition, and {@code solving} that solving takes
 * @param process bytes of the worker without any block
 * @param equations bytes in addition where equations are exchanged; null where a worker cannot form them
 */
record BlockNeeds(
  long columns,
  long[] sends,
  long kept,
  long loading,
  long solving,
  long process,
  Equations equations
) implements Serializable {
  /**
   * Bytes kept for a block from which equations are formed, while they are formed, and while they are summed.
   */
  record Equations(long kept, long forming, long summing) implements Serializable {}

  static final BlockNeeds NONE = new BlockNeeds(0, new long[0], 0, 0, 0, 0, new Equations(0, 0, 0));

  /** From the answer of the request {@code build}. */
  static BlockNeeds of(JsonNode answer) {
    JsonNode sends = answer.path("sends");
    long[] rows = new long[sends.size()];
    for (int block = 0; block < rows.length; block++) rows[block] = sends.get(block).asLong();
    JsonNode bytes = answer.path("bytes");
    JsonNode given = bytes.path("equations");
    Equations equations = given.isMissingNode()
      ? null
      : new Equations(
          given.path("kept").asLong(),
          given.path("forming").asLong(),
          given.path("summing").asLong()
        );
    return new BlockNeeds(
      answer.path("columns").asLong(),
      rows,
      bytes.path("kept").asLong(),
      bytes.path("loading").asLong(),
      bytes.path("solving").asLong(),
      bytes.path("process").asLong(),
      equations
    );
  }

  /** Rows that the block is sent for block {@code to} of the other side. */
  long sends(int to) {
    return to < sends.length ? sends[to] : 0;
  }
}
