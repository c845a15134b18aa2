package io.github.factorflow.spark.worker;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
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
 * @param flags what of the host it may use
 * @param timeoutMillis a worker that gives no sign of life for longer is ended
 * @param moreMemory advice for work that does not fit the worker's memory
 */
public record Launch(
  String node,
  String executable,
  List<String> flags,
  long timeoutMillis,
  String moreMemory
) {
  static final int PROTOCOL = 1;
  /** The plugin's version: the package must have the same. */
  static final String VERSION = version();
  private static final String IN_ARCHIVE = "factorflow/bin/factorflow";

  /** Milliseconds between a worker's signs of life. */
  long heartbeat() {
    return Math.max(10, Math.min(1000, timeoutMillis / 5));
  }

  List<String> command() {
    List<String> command = new ArrayList<>();
    if (node != null) command.add(node);
    command.add(executable != null ? executable : shipped());
    command.add("worker");
    command.addAll(flags);
    return command;
  }

  /** Throws an exception if a worker greets in another way than this version's. {@code place}: the worker. */
  void requireGreeting(Frame hello, String place) {
    if (!hello.type().equals("hello")) {
      String greeting = place + " gave no greeting, but " + hello.type() + ". ";
      throw FactorFlowException.ofHost(greeting + FactorFlowException.INSTALL, null);
    }
    String version = hello.text("version");
    long protocol = hello.number("protocol");
    if (protocol == PROTOCOL && version.equals(VERSION)) return;
    String theirs = version + " (protocol " + protocol + ")";
    String ours = VERSION + " (protocol " + PROTOCOL + ")";
    String text = "FactorFlow " + theirs + " does not fit the plugin's " + ours + ": " + place;
    throw FactorFlowException.ofHost(text + ". Put the same version on all hosts", null);
  }

  private static String shipped() {
    File file = new File(SparkFiles.getRootDirectory(), IN_ARCHIVE);
    return file.canExecute() ? file.getPath() : "factorflow";
  }

  private static String version() {
    try (InputStream in = Launch.class.getResourceAsStream("/io/github/factorflow/spark/build.properties")) {
      Properties properties = new Properties();
      properties.load(in);
      return properties.getProperty("version");
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
