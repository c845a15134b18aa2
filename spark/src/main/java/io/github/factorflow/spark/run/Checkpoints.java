package io.github.factorflow.spark.run;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import java.io.File;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.commons.io.FileUtils;
import org.apache.hadoop.fs.FileStatus;
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
  /** A checkpoint gets this name when all of it is written. */
  private static final String NAME = "checkpoint-\\d{8}";

  /** Null without a checkpoint folder, and where no iteration is due. */
  static Checkpoints of(SparkContext context, Parameters parameters) {
    int interval = parameters.checkpointInterval();
    int last = parameters.maxIter();
    if (context.getCheckpointDir().isEmpty() || interval < 1 || interval >= last) return null;
    String folder = context.getCheckpointDir().get() + "/factorflow-" + UUID.randomUUID();
    var hadoop = new SerializableConfiguration(context.hadoopConfiguration());
    return new Checkpoints(folder, interval, last, hadoop);
  }

  private FileSystem files() throws IOException {
    return new Path(folder).getFileSystem(hadoop.value());
  }

  /** On the driver: the training has ended. */
  void remove() {
    try {
      files().delete(new Path(folder), true);
    } catch (IOException failure) {
      log.warn("FactorFlow: the checkpoints in {} are left there: {}", folder, failure.getMessage());
    }
  }

  /**
   * On the worker's host: a folder below {@code files} with the newest copy of an earlier attempt, if there
   * is one.
   */
  Local open(String files) {
    File folder = new File(files, "factorflow-checkpoints-" + UUID.randomUUID());
    Local local = new Local(this, folder, new HashSet<>());
    try {
      FileUtils.forceMkdir(local.folder);
      local.fetch();
    } catch (IOException failure) {
      log.warn(
        "FactorFlow: the training begins anew, since its checkpoint cannot be read: {}",
        failure.getMessage()
      );
    }
    return local;
  }

  /**
   * The folder of a worker's checkpoints on its host; {@code copied}: names that the application's folder
   * has.
   */
  record Local(Checkpoints all, File folder, Set<String> copied) {
    /** Adds the folder to the first line that a worker gets. */
    void name(ObjectNode opening) {
      opening.putObject("checkpoints").put("dir", folder.getPath()).put("interval", all.interval);
    }

    private void fetch() throws IOException {
      Path from = new Path(all.folder);
      FileSystem files = all.files();
      if (!files.exists(from)) return;
      Optional<String> newest = Arrays.stream(files.listStatus(from))
        .map(status -> status.getPath().getName())
        .filter(name -> name.matches(NAME))
        .max(String::compareTo);
      if (newest.isEmpty()) return;
      String name = newest.get();
      files.copyToLocalFile(false, new Path(from, name), new Path(folder.getPath(), name), true);
      copied.add(name);
      log.info("FactorFlow: the training continues from {} of an earlier attempt", name);
    }

    /** Copies new checkpoints. One that cannot be copied is a warning. */
    void copy() {
      String[] names = folder.list((parent, name) -> name.matches(NAME));
      for (String name : names == null ? new String[0] : names) {
        boolean isLast = Integer.parseInt(name.substring(name.length() - 8)) >= all.last;
        if (isLast || !copied.add(name)) continue;
        try {
          copy(name);
        } catch (IOException failure) {
          log.warn("FactorFlow: {} is not copied: {}", name, failure.getMessage());
        }
      }
    }

    private void copy(String name) throws IOException {
      FileSystem files = all.files();
      Path to = new Path(all.folder);
      Path unfinished = new Path(to, "unfinished-" + UUID.randomUUID());
      files.mkdirs(to);
      files.copyFromLocalFile(false, true, new Path(folder.getPath(), name), unfinished);
      files.rename(unfinished, new Path(to, name));
      for (FileStatus older : files.listStatus(to)) {
        String other = older.getPath().getName();
        if (other.matches(NAME) && other.compareTo(name) < 0) files.delete(older.getPath(), true);
      }
    }

    void remove() {
      FileUtils.deleteQuietly(folder);
    }
  }
}
