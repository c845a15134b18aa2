package io.github.factorflow.spark.run;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.Ratings;
import io.github.factorflow.spark.Settings;

public final class ManyHosts {
  private ManyHosts() {}

  public static Factors train(Ratings ratings, Parameters parameters, Settings settings) {
    throw new UnsupportedOperationException();
  }
}
