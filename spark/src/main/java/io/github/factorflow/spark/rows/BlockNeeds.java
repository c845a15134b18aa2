package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * The facts about a loaded block from which the exchange is planned, as its worker reported them.
 *
 * @param sends for each block of the other side, the number of this block's rows that it needs
 * @param kept bytes of the worker for the block from loading to the end
 * @param loading bytes that loading takes in addition, and {@code solving} that solving takes
 * @param process bytes of the worker without any block
 */
record BlockNeeds(long[] sends, long kept, long loading, long solving, long process) implements Serializable {
  static final BlockNeeds NONE = new BlockNeeds(new long[0], 0, 0, 0, 0);

  /** From the answer of the request {@code build}. */
  static BlockNeeds of(JsonNode answer) {
    JsonNode sends = answer.path("sends");
    long[] rows = new long[sends.size()];
    for (int block = 0; block < rows.length; block++) rows[block] = sends.get(block).asLong();
    JsonNode bytes = answer.path("bytes");
    return new BlockNeeds(rows, bytes.path("kept").asLong(), bytes.path("loading").asLong(),
        bytes.path("solving").asLong(), bytes.path("process").asLong());
  }

  /** Rows that the block is sent for block {@code to} of the other side. */
  long sends(int to) {
    return to < sends.length ? sends[to] : 0;
  }
}
