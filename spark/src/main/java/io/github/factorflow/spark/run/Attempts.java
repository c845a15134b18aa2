package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.FactorFlowException;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
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

  private Attempts() {}

  public static <T> T train(SparkContext context, Function<Executors, T> training) {
    Set<String> unfit = new LinkedHashSet<>();
    Executors executors = Executors.ALL;
    for (int attempt = 1; ; attempt++) {
      Executors chosen = executors;
      try {
        return Failures.clearly(() -> training.apply(chosen));
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
}
