package io.github.factorflow.spark.run;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import java.io.IOException;
import java.io.Serializable;
import java.util.UUID;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checkpoints of a training on one host, in a folder of its own below the application's checkpoint folder: if
 * the executor is lost, the next attempt continues from the last one. The worker writes them to its host's
 * disk, and the task copies them.
 *
 * @param folder of this training alone, in the file system of the checkpoint folder
 * @param interval iterations between two checkpoints
 * @param last the iteration after which no checkpoint is needed
 */
record Checkpoints(
  String folder,
  int interval,
  int last,
  SerializableConfiguration hadoop
) implements Serializable {
  private static final Logger log = LoggerFactory.getLogger(Checkpoints.class);

  /** Null without a checkpoint folder, and where no iteration is due. */
  static Checkpoints of(SparkContext context, Parameters parameters) {
    int interval = parameters.checkpointInterval();
    if (context.getCheckpointDir().isEmpty() || interval < 1 || interval >= parameters.maxIter()) return null;
    String folder = context.getCheckpointDir().get() + "/factorflow-" + UUID.randomUUID();
    return new Checkpoints(
      folder,
      interval,
      parameters.maxIter(),
      new SerializableConfiguration(context.hadoopConfiguration())
    );
  }

  FileSystem files() throws IOException {
    return new Path(folder).getFileSystem(hadoop.value());
  }

  /** Adds the folder of a worker's checkpoints to the first line that it gets. */
  void name(ObjectNode request, LocalCheckpoints local) {
    request.putObject("checkpoints").put("dir", local.folder().getPath()).put("interval", interval);
  }

  /** On the driver: the training has ended. */
  void remove() {
    try {
      files().delete(new Path(folder), true);
    } catch (IOException failure) {
      log.warn("FactorFlow: the checkpoints in {} are left there: {}", folder, failure.getMessage());
    }
  }
}
