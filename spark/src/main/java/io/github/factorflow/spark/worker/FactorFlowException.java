package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;

/** A failure of training. The message first gives the reason, then what to do. */
public final class FactorFlowException extends RuntimeException {

  private static final long serialVersionUID = 1;
  private static final Pattern unfit = Pattern.compile("^Executor (\\S+) on \\S+ cannot run FactorFlow: ");
  static final String INSTALL =
    "Ship it by --archives factorflow.tar.gz#factorflow, or name it in spark.factorflow.executable";
  static final String HANGS =
    "Its process was stopped or its host has too much work; spark.factorflow.timeout is the limit";
  private static final int DOES_NOT_FIT = 4;
  private static final int SIGKILLED = 137;

  public FactorFlowException(String message) {
    super(message);
  }

  public FactorFlowException(String message, Throwable cause) {
    super(message, cause);
  }

  /**
   * A worker refused the work because of the parameters, the data or the memory. Running the task again would
   * end in the same way.
   */
  public static final class Refused extends RuntimeException {

    private static final long serialVersionUID = 1;

    private Refused(String message) {
      super(message);
    }
  }

  /** A failure for which this executor's host is the reason: the same work can succeed on another one. */
  public static FactorFlowException ofHost(String reason, Throwable cause) {
    SparkEnv env = SparkEnv.get();
    String executor = env == null ? "driver" : env.executorId();
    String text = "Executor " + executor + " on " + hostName() + " cannot run FactorFlow: " + reason;
    return new FactorFlowException(text, cause);
  }

  /**
   * A worker's report of an error: Refused, if the task would fail again in the same way. The message has the reason
   * and advice first, then the code of FactorFlow's command and the host.
   *
   * @param moreMemory advice for work that does not fit the worker's memory
   */
  static RuntimeException of(JsonNode error, String moreMemory) {
    long code = error.path("exitCode").asLong();
    String advice = code == DOES_NOT_FIT ? moreMemory : error.path("advice").asText("");
    String reason = error.path(error.hasNonNull("summary") ? "summary" : "message").asText("");
    String end = advice.isEmpty() ? "" : reason.endsWith(".") ? " " + advice : ". " + advice;
    String message = reason + end + " (FactorFlow on " + hostName() + ", code " + code + ")";
    if (error.path("host").asBoolean()) return ofHost(message, null);
    return code >= 2 && code <= DOES_NOT_FIT ? new Refused(message) : new FactorFlowException(message);
  }

  /**
   * Advice for the exit status of a worker that ended without a reason; {@code otherwise}: for other
   * statuses.
   */
  static String adviceAfter(int status, String otherwise) {
    return switch (status) {
      case DOES_NOT_FIT ->
        "Raise spark.factorflow.memory, or spark.executor.memoryOverhead, which a worker shares with its JVM";
      case SIGKILLED ->
        "A worker that grows beyond its container is killed: raise spark.executor.memoryOverhead, " +
        "or lower spark.factorflow.memory";
      default -> otherwise;
    };
  }

  /** The executor that cannot run a worker, also if only the text of the failure came to the driver. */
  public Optional<String> unfitExecutor() {
    Matcher found = unfit.matcher(getMessage());
    return found.find() ? Optional.of(found.group(1)) : Optional.empty();
  }

  /** The name of the host of this JVM. */
  public static String hostName() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException unknown) {
      return "this host";
    }
  }
}
