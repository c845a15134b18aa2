package io.github.factorflow.spark.recommend;

import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.run.Failures;
import io.github.factorflow.spark.run.JobDescription;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Launch;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.resource.ResourceProfile;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts a worker once for an application and its settings, to know if one can be started: recommendations
 * are computed later, when Spark's own could not replace them any more.
 */
final class Probe {

  private static final Logger log = LoggerFactory.getLogger(Probe.class);
  private static final Map<String, Boolean> known = new ConcurrentHashMap<>();

  private Probe() {}

  /** The placement of workers; null, with one warning, if none can be started. */
  static Placement placement(SparkContext context, Settings settings) {
    String key = context.applicationId() + " " + settings;
    if (Boolean.FALSE.equals(known.get(key))) return null;
    try {
      Placement placement = Placement.of(context, settings);
      if (known.get(key) == null) Failures.clearly(() -> start(context, Launch.of(settings), placement));
      known.put(key, true);
      return placement;
    } catch (FactorFlowException failure) {
      known.put(key, false);
      log.warn("FactorFlow: Spark's own ALSModel recommends, since {}", failure.getMessage());
      return null;
    }
  }

  private static Object start(SparkContext context, Launch launch, Placement placement) {
    try (JobDescription job = new JobDescription(context)) {
      job.say("FactorFlow: start of a worker");
      JavaRDD<Integer> one = JavaSparkContext.fromSparkContext(context)
        .parallelize(List.of(1), 1)
        .mapPartitions(each -> started(launch, placement));
      ResourceProfile profile = Placement.wholeExecutor(context);
      return (profile == null ? one : one.withResources(profile)).collect();
    }
  }

  private static Iterator<Integer> started(Launch launch, Placement placement) {
    TaskContext task = TaskContext.get();
    WorkerProcess.start(
      launch,
      placement.flags(task),
      SearchTask.opening(),
      task::isInterrupted,
      frame -> {}
    ).close();
    return List.of(1).iterator();
  }
}
