package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Failures of a job, with FactorFlow's reason first. */
public final class Failures {

  private static final Pattern reason = Pattern.compile(
    Pattern.quote(FactorFlowException.class.getName()) + ": (.*?)(?:\\R\\s*at |\\z)",
    Pattern.DOTALL
  );

  private Failures() {}

  /**
   * Runs work and makes its failures readable. A task's failure is reported to the driver as a text with a
   * stack trace ("Could not recover from a failed barrier stage"). If that text contains a reason from
   * FactorFlow, the reason becomes the message, and the failure its cause. Other failures are thrown
   * unchanged.
   */
  public static <T> T clearly(Supplier<T> work) {
    try {
      return work.get();
    } catch (FactorFlowException known) {
      throw known;
    } catch (Throwable failure) {
      throw Failures.<RuntimeException>undeclared(clear(failure));
    }
  }

  private static Throwable clear(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof FactorFlowException known) return new FactorFlowException(
        known.getMessage(),
        failure
      );
      Matcher found = reason.matcher(String.valueOf(cause.getMessage()));
      if (found.find()) return new FactorFlowException(found.group(1).strip(), failure);
    }
    return failure;
  }

  /** Scala's methods throw checked exceptions without declaring them, and so does this class. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> E undeclared(Throwable failure) throws E {
    throw (E) failure;
  }
}
