package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.run.Progress;
import java.io.Serializable;

/**
 * The facts about one fit on many hosts that its tasks need. Its id distinguishes its workers from other
 * fits' workers.
 *
 * @param hosts the number of blocks of each side
 * @param half true: rows are exchanged in float16
 */
record RowSession(
  String id,
  int hosts,
  Placement placement,
  Parameters parameters,
  Progress progress,
  boolean half
) implements Serializable {
  ObjectNode opening() {
    ObjectNode line = JsonNodeFactory.instance.objectNode().put("command", "rows");
    line.put("exchange", half ? "float16" : "float32").set("params", parameters.toJson());
    return line;
  }
}
