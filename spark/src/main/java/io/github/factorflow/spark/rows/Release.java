package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.version.Spark;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;

/**
 * Ends the workers of a fit on all executors, with a job of one task for each, which runs while the caller
 * continues. A worker that the job does not reach ends by itself (see {@link RowWorker}).
 */
final class Release {

  private static final Logger log = LoggerFactory.getLogger(Release.class);

  private Release() {}

  static void start(SparkContext context, String id) {
    RowWorkers.end(id);
    if (context.isLocal()) return;
    Thread thread = new Thread(() -> run(context, id), "factorflow-release");
    thread.setDaemon(true);
    thread.start();
  }

  private static void run(SparkContext context, String id) {
    // this thread has the caller's job group and tags: its cancel must not reach this job
    context.clearJobGroup();
    context.clearJobTags();
    context.setJobDescription("FactorFlow ALS: ending workers");
    List<Tuple2<String, String>> places = new ArrayList<>();
    for (var executor : Scala.java(context.statusStore().executorList(true))) {
      if (executor.id().equals("driver")) continue;
      places.add(new Tuple2<>(executor.id(), Executors.place(executor.id(), executor.hostPort())));
    }
    if (places.isEmpty()) return;
    try {
      Spark.at(context, places)
        .toJavaRDD()
        .foreach(executor -> RowWorkers.end(id));
    } catch (Exception failure) {
      // Not only RuntimeException: Scala throws checked exceptions without declaring them, for example when an
      // application that stops after its fit cancels this job.
      log.info("FactorFlow's workers end by themselves: {}", failure.getMessage());
    }
  }
}
