package io.github.factorflow.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.Optional;
import org.apache.spark.ml.param.ParamMap;
import org.apache.spark.ml.recommendation.ALS;
import org.junit.jupiter.api.Test;

class FactorFlowALSTest {
  @Test
  void standsWhereAClientAsksForSparksAls() {
    FactorFlowPlugin plugin = new FactorFlowPlugin();
    assertEquals(Optional.of(FactorFlowALS.class.getName()), plugin.transform(ALS.class.getName()));
    assertEquals(Optional.empty(), plugin.transform("org.apache.spark.ml.recommendation.ALSModel"));
  }

  @Test
  void hasSparksParametersAndDefaults() {
    FactorFlowALS ours = new FactorFlowALS("als_1");
    ALS theirs = new ALS("als_1");
    assertEquals(theirs.explainParams(), ours.explainParams());
    assertEquals(theirs.getSeed(), ours.getSeed());
  }

  @Test
  void copiesItself() {
    FactorFlowALS als = (FactorFlowALS) new FactorFlowALS().setRank(7).setUserCol("u");
    ALS copy = als.copy(new ParamMap().put(als.regParam().w(0.5)));
    assertInstanceOf(FactorFlowALS.class, copy);
    assertEquals(als.uid(), copy.uid());
    assertEquals(7, copy.getRank());
    assertEquals("u", copy.getUserCol());
    assertEquals(0.5, copy.getRegParam());
  }

  @Test
  void sendsSparksModelInFactorFlowsNames() {
    ALS als = new FactorFlowALS().setRank(5).setRegParam(0.25).setSeed(-2);
    String explicit = "{\"rank\":5,\"maxIter\":10,\"regParam\":0.25,\"seed\":1,\"nonnegative\":false,\"implicitPrefs\":false}";
    assertEquals(explicit, Parameters.of(als).toJson().toString());
    assertEquals(3.0, Parameters.of(als.setImplicitPrefs(true).setAlpha(3)).toJson().get("alpha").asDouble());
    assertEquals(42, Parameters.of(als.setSeed(42)).toJson().get("seed").asLong());
  }
}
