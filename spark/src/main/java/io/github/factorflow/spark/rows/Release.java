package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.run.ClassTagOf;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Ends the workers of a fit on all executors, with a job of one task for each, which runs while the caller
 * continues. A worker that the job does not reach ends by itself after a minute without work.
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
    List<Tuple2<String, Seq<String>>> places = new ArrayList<>();
    for (var executor : CollectionConverters.asJava(context.statusStore().executorList(true))) {
      if (executor.id().equals("driver")) continue;
      String host = executor.hostPort().replaceAll(":\\d+$", "");
      places.add(new Tuple2<>(executor.id(), CollectionConverters.asScala(List.of("executor_" + host + "_" + executor.id())).toList()));
    }
    if (places.isEmpty()) return;
    try {
      RDD<String> executors = context.makeRDD(CollectionConverters.asScala(places).toList(), new ClassTagOf<String>(String.class).get());
      executors.toJavaRDD().foreach(executor -> RowWorkers.end(id));
    } catch (RuntimeException failure) {
      log.info("FactorFlow's workers end by themselves: {}", failure.getMessage());
    }
  }
}
