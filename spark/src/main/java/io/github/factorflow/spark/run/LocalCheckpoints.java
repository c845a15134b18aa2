package io.github.factorflow.spark.run;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.commons.io.FileUtils;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The folder of a worker's checkpoints on its host, and the copies of them in the application's folder. */
final class LocalCheckpoints implements AutoCloseable {

  private static final Logger log = LoggerFactory.getLogger(LocalCheckpoints.class);
  /** A checkpoint gets this name when all of it is written. */
  private static final String NAME = "checkpoint-\\d{8}";
  private final Checkpoints all;
  private final File folder;
  private final Set<String> copied = new HashSet<>();

  private LocalCheckpoints(Checkpoints all, File folder) {
    this.all = all;
    this.folder = folder;
  }

  /** A folder with the newest copy of an earlier attempt, if there is one. */
  static LocalCheckpoints open(Checkpoints all, String files) {
    LocalCheckpoints local = new LocalCheckpoints(
      all,
      new File(files, "factorflow-checkpoints-" + UUID.randomUUID())
    );
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

  File folder() {
    return folder;
  }

  private void fetch() throws IOException {
    Path from = new Path(all.folder());
    FileSystem files = all.files();
    if (!files.exists(from)) return;
    Optional<String> newest = Arrays.stream(files.listStatus(from))
      .map(FileStatus::getPath)
      .map(Path::getName)
      .filter(name -> name.matches(NAME))
      .max(String::compareTo);
    if (newest.isEmpty()) return;
    files.copyToLocalFile(
      false,
      new Path(from, newest.get()),
      new Path(folder.getPath(), newest.get()),
      true
    );
    copied.add(newest.get());
    log.info("FactorFlow: the training continues from {} of an earlier attempt", newest.get());
  }

  /** Copies new checkpoints. One that cannot be copied is a warning. */
  void copy() {
    String[] names = folder.list((parent, name) -> name.matches(NAME));
    for (String name : names == null ? new String[0] : names) {
      boolean isLast = Integer.parseInt(name.substring(name.length() - 8)) >= all.last();
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
    Path unfinished = new Path(all.folder(), "unfinished-" + UUID.randomUUID());
    files.mkdirs(new Path(all.folder()));
    files.copyFromLocalFile(false, true, new Path(folder.getPath(), name), unfinished);
    files.rename(unfinished, new Path(all.folder(), name));
    for (FileStatus older : files.listStatus(new Path(all.folder()))) {
      String other = older.getPath().getName();
      if (other.matches(NAME) && other.compareTo(name) < 0) files.delete(older.getPath(), true);
    }
  }

  @Override
  public void close() {
    FileUtils.deleteQuietly(folder);
  }
}
