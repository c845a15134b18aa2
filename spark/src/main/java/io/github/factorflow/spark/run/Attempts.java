package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Trains, and trains again on other executors if one cannot run a worker: for example, its host has an old
 * Node, another version of FactorFlow, or no disk space. Spark itself runs a failed task again on the same
 * executor, unless {@code spark.excludeOnFailure.enabled} is set.
 */
public final class Attempts {

  private static final Logger log = LoggerFactory.getLogger(Attempts.class);
  private static final int MOST = 8;
  private static final Pattern reason = Pattern.compile(
    Pattern.quote(FactorFlowException.class.getName()) + ": (.*?)(?:\\R\\s*at |\\z)",
    Pattern.DOTALL
  );

  private Attempts() {}

  public static <T> T train(SparkContext context, Function<Executors, T> training) {
    Set<String> unfit = new LinkedHashSet<>();
    Executors executors = Executors.ALL;
    for (int attempt = 1; ; attempt++) {
      Executors chosen = executors;
      try {
        return clearly(() -> training.apply(chosen));
      } catch (FactorFlowException failure) {
        Optional<String> executor = failure.unfitExecutor();
        if (executor.isEmpty() || attempt == MOST) throw failure;
        unfit.add(executor.get());
        executors = Executors.without(context, unfit);
        if (!executors.areLimited()) throw failure;
        log.warn("{}. FactorFlow trains on the other executors", failure.getMessage());
      }
    }
  }

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
      throw Attempts.<RuntimeException>undeclared(clear(failure));
    }
  }

  private static Throwable clear(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof FactorFlowException) return new FactorFlowException(cause.getMessage(), failure);
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
