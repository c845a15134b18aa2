package io.github.factorflow.spark.run;

import io.github.factorflow.spark.worker.Frame;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What tasks tell the driver: named counters, which Spark's UI shows, and the reasons for which workers refused the work. */
final class Progress implements Serializable {
  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(Progress.class);
  final LongAccumulator ratings = new LongAccumulator();
  final LongAccumulator iterations = new LongAccumulator();
  final LongAccumulator handOver = new LongAccumulator();
  final LongAccumulator training = new LongAccumulator();
  /** Refusals are results, not failures of a task: Spark would run the task again, to the same end. */
  final CollectionAccumulator<String> refusals = new CollectionAccumulator<>();

  static Progress register(SparkContext context) {
    Progress progress = new Progress();
    context.register(progress.ratings, "FactorFlow: ratings");
    context.register(progress.iterations, "FactorFlow: iterations");
    context.register(progress.handOver, "FactorFlow: ms of handing over");
    context.register(progress.training, "FactorFlow: ms of training");
    context.register(progress.refusals);
    return progress;
  }

  /** Takes a worker's frames that need no answer. */
  void see(Frame frame) {
    if (frame.type().equals("iteration")) iterations.add(1);
    log.info("FactorFlow: {}", frame.header());
  }

  List<String> refused() {
    return refusals.value();
  }
}
