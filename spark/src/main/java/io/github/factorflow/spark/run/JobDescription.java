package io.github.factorflow.spark.run;

import org.apache.spark.SparkContext;

/**
 * Sets the description of this thread's jobs in Spark's UI; the previous description is restored at the end.
 */
public final class JobDescription implements AutoCloseable {

  private static final String KEY = "spark.job.description";
  private final SparkContext context;
  private final String former;

  public JobDescription(SparkContext context) {
    this.context = context;
    former = context.getLocalProperty(KEY);
  }

  public void say(String text) {
    context.setLocalProperty(KEY, former == null ? text : former + ": " + text);
  }

  @Override
  public void close() {
    context.setLocalProperty(KEY, former);
  }
}
