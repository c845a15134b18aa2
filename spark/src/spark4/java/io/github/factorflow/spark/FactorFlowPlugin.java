package io.github.factorflow.spark;

import java.util.Optional;
import org.apache.spark.sql.connect.plugin.MLBackendPlugin;

/**
 * Names the class that a Spark Connect server creates when a client requests ALS. The plugin's own name is
 * in {@code spark.connect.ml.backend.classes}.
 */
public final class FactorFlowPlugin implements MLBackendPlugin {
  private static final String SPARK_ALS = "org.apache.spark.ml.recommendation.ALS";

  @Override
  public Optional<String> transform(String className) {
    return SPARK_ALS.equals(className) ? Optional.of(FactorFlowALS.class.getName()) : Optional.empty();
  }
}
