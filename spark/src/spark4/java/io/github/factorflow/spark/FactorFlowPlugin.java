package io.github.factorflow.spark;

import java.util.Optional;
import org.apache.spark.sql.connect.plugin.MLBackendPlugin;

/**
 * Names the class that a Spark Connect server creates when a client requests ALS, and the class that reads a
 * model which the server wrote to its cache on disk: models are written as plain ALSModel. The plugin's own
 * name is in {@code spark.connect.ml.backend.classes}.
 */
public final class FactorFlowPlugin implements MLBackendPlugin {

  private static final String SPARK_ALS = "org.apache.spark.ml.recommendation.ALS";
  private static final String SPARK_MODEL = "org.apache.spark.ml.recommendation.ALSModel";

  @Override
  public Optional<String> transform(String className) {
    if (SPARK_ALS.equals(className)) return Optional.of(FactorFlowALS.class.getName());
    return FactorFlowALSModel.class.getName().equals(className) ? Optional.of(SPARK_MODEL) : Optional.empty();
  }
}
