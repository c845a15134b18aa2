package io.github.factorflow.spark.worker;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;

/** A failure of training. The message first gives the reason, then what to do. */
public final class FactorFlowException extends RuntimeException {

  private static final long serialVersionUID = 1;
  private static final Pattern unfit = Pattern.compile("^Executor (\\S+) on \\S+ cannot run FactorFlow: ");

  public FactorFlowException(String message) {
    super(message);
  }

  public FactorFlowException(String message, Throwable cause) {
    super(message, cause);
  }

  /** A failure for which this executor's host is the reason: the same work can succeed on another one. */
  public static FactorFlowException ofHost(String reason, Throwable cause) {
    SparkEnv env = SparkEnv.get();
    String executor = env == null ? "driver" : env.executorId();
    return new FactorFlowException(
      "Executor " + executor + " on " + HostName.get() + " cannot run FactorFlow: " + reason,
      cause
    );
  }

  /** The executor that cannot run a worker, also if only the text of the failure came to the driver. */
  public Optional<String> unfitExecutor() {
    Matcher found = unfit.matcher(getMessage());
    return found.find() ? Optional.of(found.group(1)) : Optional.empty();
  }
}
