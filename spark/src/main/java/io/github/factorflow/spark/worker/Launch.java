package io.github.factorflow.spark.worker;

import io.github.factorflow.spark.Settings;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.spark.SparkFiles;

/**
 * The command line of a worker, searched on the host that starts it: the executable of the settings, else
 * the one in an archive shipped under the name factorflow ({@code --archives factorflow.tar.gz#factorflow}),
 * else factorflow on PATH.
 *
 * @param timeoutMillis a worker that gives no sign of life for longer is ended
 */
public record Launch(String node, String executable, long timeoutMillis) implements Serializable {
  public static final int PROTOCOL = 1;
  /** The plugin's version: the package must have the same. */
  public static final String VERSION = version();
  private static final String IN_ARCHIVE = "factorflow/bin/factorflow";

  public static Launch of(Settings settings) {
    return new Launch(settings.node(), settings.executable(), settings.timeout());
  }

  /** Milliseconds between a worker's signs of life. */
  long heartbeat() {
    return Math.max(10, Math.min(1000, timeoutMillis / 5));
  }

  public List<String> command() {
    List<String> command = new ArrayList<>();
    if (node != null) command.add(node);
    command.add(executable != null ? executable : shipped());
    command.add("worker");
    return command;
  }

  private static String shipped() {
    File file = new File(SparkFiles.getRootDirectory(), IN_ARCHIVE);
    return file.canExecute() ? file.getPath() : "factorflow";
  }

  private static String version() {
    try (InputStream in = Settings.class.getResourceAsStream("build.properties")) {
      Properties properties = new Properties();
      properties.load(in);
      return properties.getProperty("version");
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
