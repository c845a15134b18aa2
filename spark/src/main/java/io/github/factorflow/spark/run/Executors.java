package io.github.factorflow.spark.run;

import io.github.factorflow.spark.version.Scala;
import java.io.Serializable;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.collection.Iterator;
import scala.reflect.ClassTag;

/**
 * The executors on which workers can be started.
 *
 * @param places Spark's names of their locations, "" for any; an empty list if no executor is excluded
 */
public record Executors(List<String> places) implements Serializable {
  public static final Executors ALL = new Executors(List.of());

  /** All running executors except some. Places are empty if none remains. */
  static Executors without(SparkContext context, Set<String> excluded) {
    return excluded.isEmpty() ? ALL : new Executors(places(context, excluded));
  }

  /** The executors that run now, without the driver. */
  public static Stream<ExecutorSummary> running(SparkContext context) {
    return Scala.java(context.statusStore().executorList(true))
      .stream()
      .filter(executor -> !executor.id().equals("driver"));
  }

  /** Spark's names of the locations of all running executors except some. */
  public static List<String> places(SparkContext context, Set<String> excluded) {
    return running(context)
      .filter(executor -> !excluded.contains(executor.id()))
      .map(executor -> "executor_" + executor.hostPort().replaceAll(":\\d+$", "") + "_" + executor.id())
      .toList();
  }

  public boolean areLimited() {
    return !places.isEmpty();
  }

  /** True if workers can be started on the executor that calls. */
  public boolean includeThis() {
    String end = "_" + SparkEnv.get().executorId();
    return places.isEmpty() || places.stream().anyMatch(place -> place.endsWith(end));
  }

  /**
   * The same RDD, whose partition p prefers the place p modulo places, as long as its executor runs: Spark
   * would wait some seconds for a lost one in each stage.
   */
  public <T> RDD<T> prefer(RDD<T> rdd, ClassTag<T> tag) {
    return places.isEmpty() ? rdd : new Preferring<>(rdd, tag, places);
  }

  private static final class Preferring<T> extends RDD<T> {

    private static final long serialVersionUID = 1;
    private final ClassTag<T> tag;
    private final List<String> places;

    Preferring(RDD<T> parent, ClassTag<T> tag, List<String> places) {
      super(parent, tag);
      this.tag = tag;
      this.places = places;
    }

    @Override
    public Iterator<T> compute(Partition split, TaskContext context) {
      return this.<T>firstParent(tag).iterator(split, context);
    }

    @Override
    public Partition[] getPartitions() {
      return this.<T>firstParent(tag).partitions();
    }

    @Override
    public scala.collection.immutable.List<String> getPreferredLocations(Partition split) {
      String place = places.get(split.index() % places.size());
      return Scala.scala(places(context(), Set.of()).contains(place) ? List.of(place) : List.of());
    }
  }
}
