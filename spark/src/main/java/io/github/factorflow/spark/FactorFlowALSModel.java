package io.github.factorflow.spark;

import io.github.factorflow.spark.recommend.CollectedSide;
import io.github.factorflow.spark.recommend.Recommender;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.recommendation.ALSModel;
import org.apache.spark.ml.util.MLWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/**
 * Spark's ALSModel whose recommendations FactorFlow computes: the models of FactorFlowALS, and any
 * other by {@link #of}. It is saved as a plain ALSModel, so it can be loaded without this package.
 */
public class FactorFlowALSModel extends ALSModel {

  private final transient CollectedSide users;
  private final transient CollectedSide items;

  FactorFlowALSModel(String uid, int rank, Dataset<Row> userFactors, Dataset<Row> itemFactors) {
    this(
      new ALSModel(uid, rank, userFactors, itemFactors),
      new CollectedSide(userFactors, rank),
      new CollectedSide(itemFactors, rank)
    );
  }

  /** Without the parameters of {@code model}. */
  private FactorFlowALSModel(ALSModel model, CollectedSide users, CollectedSide items) {
    super(model.uid(), model.rank(), model.userFactors(), model.itemFactors());
    this.users = users;
    this.items = items;
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

  private Recommender recommender() {
    return new Recommender(plain(), users, items);
  }

  private ALSModel plain() {
    return copied(this, new ALSModel(uid(), rank(), userFactors(), itemFactors()), ParamMap.empty());
  }

  @Override
  public Dataset<Row> recommendForAllUsers(int numItems) {
    return recommender().forAllUsers(numItems);
  }

  @Override
  public Dataset<Row> recommendForAllItems(int numUsers) {
    return recommender().forAllItems(numUsers);
  }

  @Override
  public Dataset<Row> recommendForUserSubset(Dataset<?> dataset, int numItems) {
    return recommender().forUserSubset(dataset, numItems);
  }

  @Override
  public Dataset<Row> recommendForItemSubset(Dataset<?> dataset, int numUsers) {
    return recommender().forItemSubset(dataset, numUsers);
  }

  @Override
  public FactorFlowALSModel copy(ParamMap extra) {
    return copied(this, new FactorFlowALSModel(this, users, items), extra);
  }

  @Override
  public MLWriter write() {
    return plain().write();
  }
}
