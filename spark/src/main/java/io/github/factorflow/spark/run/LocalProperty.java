package io.github.factorflow.spark.run;

import org.apache.spark.SparkContext;

/** A property of the jobs of this thread; the previous value is restored at the end. */
public final class LocalProperty implements AutoCloseable {

  private final SparkContext context;
  private final String key;
  private final String former;

  public LocalProperty(SparkContext context, String key, String value) {
    this.context = context;
    this.key = key;
    former = context.getLocalProperty(key);
    context.setLocalProperty(key, value);
  }

  /** The description of jobs in Spark's UI. */
  public static LocalProperty description(SparkContext context, String text) {
    String key = "spark.job.description";
    String former = context.getLocalProperty(key);
    return new LocalProperty(context, key, former == null ? text : former + ": " + text);
  }

  @Override
  public void close() {
    context.setLocalProperty(key, former);
  }
}
