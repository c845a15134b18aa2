package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.rows.ManyHosts;
import io.github.factorflow.spark.run.Attempts;
import io.github.factorflow.spark.run.Factors;
import io.github.factorflow.spark.run.OneHost;
import io.github.factorflow.spark.run.Progress;
import io.github.factorflow.spark.version.Versions;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.recommendation.ALS;
import org.apache.spark.ml.recommendation.ALSModel;
import org.apache.spark.ml.util.Identifiable$;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's ALS, trained by FactorFlow's kernels. Parameters, defaults, checks of the data and initial factors
 * are Spark's; fit returns Spark's own ALSModel. numUserBlocks and numItemBlocks are the numbers of
 * partitions of the factors. Estimators are saved as plain ALS, so they can be loaded without this package.
 */
public class FactorFlowALS extends ALS {

  private static final Logger log = LoggerFactory.getLogger(FactorFlowALS.class);
  /** Ranks above this are trained by Spark. */
  private static final int MAXIMUM_RANK = 512;
  private static volatile FitSummary last;
  private Map<String, Object> factorFlowParams = Map.of();

  /** The summary of this JVM's last fit; empty if it failed or Spark's own ALS trained. */
  public static Optional<FitSummary> lastSummary() {
    return Optional.ofNullable(last);
  }

  public FactorFlowALS() {
    this(Identifiable$.MODULE$.randomUID("als"));
  }

  public FactorFlowALS(String uid) {
    super(uid);
    // Spark's default seed is a hash of the class's name
    setDefault(seed(), (long) ALS.class.getName().hashCode());
  }

  /**
   * Sets a parameter that Spark's ALS does not have, by the name of FactorFlow's option: {@code biases},
   * {@code cgSteps} and others (docs/spark.md). It replaces {@code spark.factorflow.param.*} of the
   * application, is kept by {@code copy}, and is not saved. Throws IllegalArgumentException for an unknown
   * name and for a value out of range.
   */
  public FactorFlowALS setFactorFlowParam(String name, Object value) {
    Map<String, Object> more = new TreeMap<>(factorFlowParams);
    more.put(name, value);
    return setFactorFlowParams(more);
  }

  /** Sets all of them; those that were set before and are not in the map are unset. */
  public FactorFlowALS setFactorFlowParams(Map<String, ?> params) {
    FactorFlowParameters.ofValues(params);
    factorFlowParams = Collections.unmodifiableMap(new TreeMap<>(params));
    return this;
  }

  public Map<String, Object> getFactorFlowParams() {
    return factorFlowParams;
  }

  @Override
  public FactorFlowALS copy(ParamMap extra) {
    return ((FactorFlowALS) super.copy(extra)).setFactorFlowParams(factorFlowParams);
  }

  @Override
  public ALSModel fit(Dataset<?> dataset) {
    Versions.require(dataset.sparkSession().version());
    last = null;
    SparkConf conf = dataset.sparkSession().sparkContext().getConf();
    ObjectNode more = Settings.parameters(conf).setAll(FactorFlowParameters.ofValues(factorFlowParams));
    FactorFlowParameters.requireOneAlgorithm(more);
    Optional<String> reason = unsupported();
    if (reason.isPresent()) {
      String names = String.join(", ", (Iterable<String>) more::fieldNames);
      if (!more.isEmpty()) throw new IllegalArgumentException(
        reason.get() + ", and Spark's own ALS does not have " + names
      );
      log.warn("FactorFlow: Spark's own ALS trains {}, since {}", uid(), reason.get());
      return super.fit(dataset);
    }
    transformSchema(dataset.schema());
    Ratings ratings = Ratings.of(this, dataset);
    Parameters parameters = Parameters.of(this, more);
    Settings settings = Settings.of(conf);
    boolean many = settings.workers() > 1 && !parameters.isSgd();
    int hosts = many ? settings.workers() : 1;
    if (settings.workers() > 1 && !many) log.warn(
      "FactorFlow: SGD trains on one host. spark.factorflow.workers {} does not act on {}",
      settings.workers(),
      uid()
    );
    Factors factors = Attempts.train(ratings.context(), executors -> {
      Progress progress = Progress.register(ratings.context());
      long start = System.nanoTime();
      Factors trained =
        many
          ? ManyHosts.train(ratings, parameters, settings, executors, progress)
          : OneHost.train(ratings, parameters, settings, executors, progress);
      last = FitSummary.of(parameters, hosts, progress, (System.nanoTime() - start) / 1e9);
      return trained;
    });
    log.info("FactorFlow: {} | {}", uid(), last);
    var model = new FactorFlowALSModel(uid(), parameters.features(), factors.users(), factors.items());
    model.setBlockSize(getBlockSize()).setParent(this);
    return copyValues(model, ParamMap.empty());
  }

  @Override
  public MLWriter write() {
    if (!factorFlowParams.isEmpty()) log.warn(
      "FactorFlow: a saved ALS does not have {}",
      String.join(", ", factorFlowParams.keySet())
    );
    return copyValues(new ALS(uid()), ParamMap.empty()).write();
  }

  private Optional<String> unsupported() {
    if (getMaxIter() == 0) return Optional.of("FactorFlow needs one iteration, and maxIter is 0");
    if (getRank() <= MAXIMUM_RANK) return Optional.empty();
    return Optional.of("rank " + getRank() + " is above FactorFlow's " + MAXIMUM_RANK);
  }
}
