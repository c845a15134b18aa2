package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;

/**
 * The facts about a loaded block from which the exchange is planned, as its worker reported them.
 *
 * <p>A class, since Kryo as in Spark 3.5 cannot copy records.
 */
final class BlockNeeds implements Serializable {

  private static final long serialVersionUID = 1;
  static final BlockNeeds NONE = new BlockNeeds(0, new long[0], 0, 0, 0, 0, new Equations(0, 0, 0));
  /** Rows of the other side that occur in the block. */
  final long columns;
  /** For each block of the other side, the number of this block's rows that it is sent. */
  private final long[] sends;
  /** Bytes of the worker for the block from loading to the end. */
  final long kept;
  /** Bytes in addition while it is loaded. */
  final long loading;
  /** Bytes in addition while it is solved. */
  final long solving;
  /** Bytes of the worker without any block. */
  final long process;
  /** Bytes in addition where equations are exchanged; null where a worker cannot form them. */
  final Equations equations;

  BlockNeeds(
    long columns,
    long[] sends,
    long kept,
    long loading,
    long solving,
    long process,
    Equations equations
  ) {
    this.columns = columns;
    this.sends = sends;
    this.kept = kept;
    this.loading = loading;
    this.solving = solving;
    this.process = process;
    this.equations = equations;
  }

  /** Bytes of a block from which equations are formed. */
  static final class Equations implements Serializable {

    private static final long serialVersionUID = 1;
    final long kept;
    /** In addition while they are formed. */
    final long forming;
    /** In addition while they are summed. */
    final long summing;

    Equations(long kept, long forming, long summing) {
      this.kept = kept;
      this.forming = forming;
      this.summing = summing;
    }
  }

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
