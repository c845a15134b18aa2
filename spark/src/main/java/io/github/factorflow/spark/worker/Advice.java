package io.github.factorflow.spark.worker;

/** Advice for a worker that could not start or that ended without giving a reason. */
final class Advice {

  static final String INSTALL =
    "Ship it by --archives factorflow.tar.gz#factorflow, or name it in spark.factorflow.executable";
  static final String HANGS =
    "Its process was stopped or its host has too much work; spark.factorflow.timeout is the limit";
  private static final int DOES_NOT_FIT = 4;
  private static final int SIGKILLED = 137;

  private Advice() {}

  /** The advice for an exit status; {@code otherwise}: for one that does not say why. */
  static String afterStatus(int status, String otherwise) {
    return switch (status) {
      case DOES_NOT_FIT ->
        "Raise spark.factorflow.memory, or spark.executor.memoryOverhead, which a worker shares with its JVM";
      case SIGKILLED ->
        "A worker that grows beyond its container is killed: raise spark.executor.memoryOverhead, " +
        "or lower spark.factorflow.memory";
      default -> otherwise;
    };
  }
}
