package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.run.Progress;
import io.github.factorflow.spark.worker.Launch;
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
  Launch launch,
  Placement placement,
  Parameters parameters,
  Progress progress,
  boolean half
) implements Serializable {
  ObjectNode opening() {
    ObjectNode line = JsonNodeFactory.instance.objectNode();
    line.put("protocol", Launch.PROTOCOL).put("version", Launch.VERSION).put("command", "rows");
    line.put("exchange", half ? "float16" : "float32");
    line.set("params", parameters.toJson());
    return line;
  }
}
