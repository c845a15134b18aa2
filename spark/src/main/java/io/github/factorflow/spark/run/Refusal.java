package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.HostName;

/**
 * Error frames of a worker as messages: the reason and advice first, then the code of FactorFlow's command
 * and the host.
 */
public final class Refusal {

  private static final int DOES_NOT_FIT = 4;

  /**
   * A worker refused the work because of the parameters, the data or the memory. Running the task again
   * would end in the same way.
   */
  public static final class Refused extends RuntimeException {

    private static final long serialVersionUID = 1;

    Refused(String message) {
      super(message);
    }
  }

  private Refusal() {}

  /** Refused, if the task would fail again in the same way; else FactorFlowException. */
  public static RuntimeException failure(Frame error, Placement placement) {
    long code = error.number("exitCode");
    String message = of(error, placement);
    if (error.header().path("host").asBoolean()) return FactorFlowException.ofHost(message, null);
    return code >= 2 && code <= DOES_NOT_FIT ? new Refused(message) : new FactorFlowException(message);
  }

  static String of(Frame error, Placement placement) {
    long code = error.number("exitCode");
    String advice = code == DOES_NOT_FIT ? placement.moreMemory() : error.text("advice");
    String message = error.text(error.header().hasNonNull("summary") ? "summary" : "message");
    String sentence = message.endsWith(".") || advice.isEmpty() ? message : message + ".";
    return (
      (advice.isEmpty() ? sentence : sentence + " " + advice) +
      " (FactorFlow on " +
      HostName.get() +
      ", code " +
      code +
      ")"
    );
  }
}
