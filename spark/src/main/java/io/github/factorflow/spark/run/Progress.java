package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.Frame;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports of tasks to the driver: named counters, which Spark's UI shows, and the reasons why workers
 * refused the work.
 */
public final class Progress implements Serializable {
  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(Progress.class);
  private final LongAccumulator ratings = new LongAccumulator();
  private final LongAccumulator iterations = new LongAccumulator();
  private final LongAccumulator handOver = new LongAccumulator();
  private final LongAccumulator training = new LongAccumulator();
  /**
   * Refusals are results, not failures of a task: Spark would run a failed task again, with the same
   * outcome.
   */
  private final CollectionAccumulator<String> refusals = new CollectionAccumulator<>();

  private Progress() {}

  public static Progress register(SparkContext context) {
    Progress progress = new Progress();
    context.register(progress.ratings, "FactorFlow: ratings");
    context.register(progress.iterations, "FactorFlow: iterations");
    context.register(progress.handOver, "FactorFlow: ms of handing over");
    context.register(progress.training, "FactorFlow: ms of training");
    context.register(progress.refusals);
    return progress;
  }

  /** Takes a worker's frames that need no answer. */
  public void see(Frame frame) {
    if (frame.type().equals("iteration")) iterations.add(1);
    if (frame.type().equals("warning")) log.warn("FactorFlow: {}", frame.text("text"));
    else log.info("FactorFlow: {}", frame.header());
  }

  public void ratings(long rows) {
    ratings.add(rows);
  }

  void handedOver(long millis) {
    handOver.add(millis);
  }

  void trained(long millis) {
    training.add(millis);
  }

  void refused(String reason) {
    refusals.add(reason);
  }

  List<String> refusals() {
    return refusals.value();
  }
}
