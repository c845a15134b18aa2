package io.github.factorflow.spark.version;

/** The versions of Spark and Scala for which this jar was compiled. */
public final class Versions {

  private Versions() {}

  /** Throws an exception with advice if this jar is for another Spark or Scala than the running one. */
  public static void require(String spark) {
    require(spark, scala.util.Properties.versionNumberString());
  }

  static void require(String spark, String scala) {
    if (spark.startsWith(Spark.SERIES) && scala.startsWith(Spark.SCALA)) return;
    throw new UnsupportedOperationException(
      "This jar of factorflow-spark is for Spark " + Spark.SERIES + "x with Scala " + Spark.SCALA + "x, and " +
      "this is Spark " + spark + " with Scala " + scala + ". There are factorflow-spark-VERSION.jar for " +
      "Spark 4 (Scala 2.13) and factorflow-spark-3.5_2.12-VERSION.jar for Spark 3.5 (Scala 2.12)"
    );
  }
}
