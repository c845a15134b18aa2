package io.github.factorflow.spark.run;

import org.apache.spark.SparkConf;

/** The driver's memory. */
public final class DriverMemory {

  private DriverMemory() {}

  /**
   * Bytes of factors that the driver can hold: an eighth of its memory, and half of the results that it
   * accepts.
   */
  public static long mostOfFactors(SparkConf conf) {
    long results = conf.getSizeAsBytes("spark.driver.maxResultSize", "1g");
    return Math.min(results == 0 ? Long.MAX_VALUE : results / 2, Runtime.getRuntime().maxMemory() / 8);
  }
}
