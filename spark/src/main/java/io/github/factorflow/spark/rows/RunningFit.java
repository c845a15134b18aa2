package io.github.factorflow.spark.rows;

import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;

/**
 * Marks the jobs of this thread as jobs of a fit, until it is closed. Later jobs, which solve blocks of the fit
 * again if their factors were lost, are not marked.
 */
final class RunningFit implements AutoCloseable {

  private static final String KEY = "factorflow.fit";
  private final SparkContext context;

  RunningFit(SparkContext context, String id) {
    this.context = context;
    context.setLocalProperty(KEY, id);
  }

  /** True for a task of a job of the fit with this id. */
  static boolean hasTask(String id, TaskContext task) {
    return id.equals(task.getLocalProperty(KEY));
  }

  @Override
  public void close() {
    context.setLocalProperty(KEY, null);
  }
}
