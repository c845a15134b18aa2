package io.github.factorflow.spark;

import io.github.factorflow.spark.run.Attempts;
import io.github.factorflow.spark.run.Factors;
import io.github.factorflow.spark.rows.ManyHosts;
import io.github.factorflow.spark.run.OneHost;
import io.github.factorflow.spark.version.Versions;
import java.util.Optional;
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

  public FactorFlowALS() {
    this(Identifiable$.MODULE$.randomUID("als"));
  }

  public FactorFlowALS(String uid) {
    super(uid);
    // Spark's default seed is a hash of the class's name
    setDefault(seed(), (long) ALS.class.getName().hashCode());
  }

  @Override
  public ALSModel fit(Dataset<?> dataset) {
    Versions.require(dataset.sparkSession().version());
    Optional<String> reason = unsupported();
    if (reason.isPresent()) {
      log.warn("FactorFlow: Spark's own ALS trains {}, since {}", uid(), reason.get());
      return super.fit(dataset);
    }
    transformSchema(dataset.schema());
    Ratings ratings = Ratings.of(this, dataset);
    Parameters parameters = Parameters.of(this);
    Settings settings = Settings.of(ratings.context().getConf());
    Factors factors = Attempts.train(ratings.context(), executors -> settings.workers() > 1
        ? ManyHosts.train(ratings, parameters, settings, executors)
        : OneHost.train(ratings, parameters, settings, executors));
    ALSModel model = new ALSModel(uid(), getRank(), factors.users(), factors.items());
    return copyValues(model.setBlockSize(getBlockSize()).setParent(this), emptyParamMap());
  }

  @Override
  public MLWriter write() {
    return copyValues(new ALS(uid()), emptyParamMap()).write();
  }

  private static org.apache.spark.ml.param.ParamMap emptyParamMap() {
    return org.apache.spark.ml.param.ParamMap.empty();
  }

  private Optional<String> unsupported() {
    if (getMaxIter() == 0) return Optional.of("FactorFlow needs one iteration, and maxIter is 0");
    if (getRank() > MAXIMUM_RANK) return Optional.of("rank " + getRank() + " is above FactorFlow's " + MAXIMUM_RANK);
    return Optional.empty();
  }
}
