package io.github.factorflow.spark.worker;

/** A failure of training. The message first gives the reason, then what to do. */
public final class FactorFlowException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public FactorFlowException(String message) {
    super(message);
  }

  public FactorFlowException(String message, Throwable cause) {
    super(message, cause);
  }
}
