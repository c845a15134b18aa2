package io.github.factorflow.spark;

import io.github.factorflow.spark.recommend.Recommender;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.recommendation.ALSModel;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Spark's ALSModel whose recommendations FactorFlow's workers search: the models of FactorFlowALS, and any
 * other by {@link #of}. It is saved as a plain ALSModel, so it can be loaded without this package.
 */
public class FactorFlowALSModel extends ALSModel {

  FactorFlowALSModel(String uid, int rank, Dataset<Row> userFactors, Dataset<Row> itemFactors) {
    super(uid, rank, userFactors, itemFactors);
  }

  /** The same model, such as one that {@code ALSModel.load} returned, with recommendations by FactorFlow. */
  public static FactorFlowALSModel of(ALSModel model) {
    return copied(
      model,
      new FactorFlowALSModel(model.uid(), model.rank(), model.userFactors(), model.itemFactors()),
      ParamMap.empty()
    );
  }

  private static <M extends ALSModel> M copied(ALSModel from, M to, ParamMap extra) {
    from.copyValues(to, extra);
    to.setParent(from.parent());
    return to;
  }

  private ALSModel plain() {
    return copied(this, new ALSModel(uid(), rank(), userFactors(), itemFactors()), ParamMap.empty());
  }

  @Override
  public Dataset<Row> recommendForAllUsers(int numItems) {
    return new Recommender(plain()).forAllUsers(numItems);
  }

  @Override
  public Dataset<Row> recommendForAllItems(int numUsers) {
    return new Recommender(plain()).forAllItems(numUsers);
  }

  @Override
  public Dataset<Row> recommendForUserSubset(Dataset<?> dataset, int numItems) {
    return new Recommender(plain()).forUserSubset(dataset, numItems);
  }

  @Override
  public Dataset<Row> recommendForItemSubset(Dataset<?> dataset, int numUsers) {
    return new Recommender(plain()).forItemSubset(dataset, numUsers);
  }

  @Override
  public FactorFlowALSModel copy(ParamMap extra) {
    return copied(this, new FactorFlowALSModel(uid(), rank(), userFactors(), itemFactors()), extra);
  }

  @Override
  public MLWriter write() {
    return plain().write();
  }
}
