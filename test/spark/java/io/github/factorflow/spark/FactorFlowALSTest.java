package io.github.factorflow.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.Map;
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
    assertEquals(
      Optional.of("org.apache.spark.ml.recommendation.ALSModel"),
      plugin.transform(FactorFlowALSModel.class.getName())
    );
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
    FactorFlowALS als = (FactorFlowALS) new FactorFlowALS().setRank(5).setRegParam(0.25).setSeed(-2);
    String explicit =
      "{\"rank\":5,\"maxIter\":10,\"regParam\":0.25,\"seed\":1,\"nonnegative\":false,\"implicitPrefs\":false}";
    assertEquals(explicit, parameters(als).toJson().toString());
    assertEquals(
      3.0,
      parameters((FactorFlowALS) als.setImplicitPrefs(true).setAlpha(3))
        .toJson()
        .get("alpha")
        .asDouble()
    );
    assertEquals(
      42,
      parameters((FactorFlowALS) als.setSeed(42))
        .toJson()
        .get("seed")
        .asLong()
    );
  }

  private static Parameters parameters(FactorFlowALS als) {
    return Parameters.of(als, FactorFlowParameters.ofValues(als.getFactorFlowParams()));
  }

  @Test
  void hasFactorFlowsOwnParametersWhichCopiesKeep() {
    FactorFlowALS als = new FactorFlowALS()
      .setFactorFlowParam("biases", true)
      .setFactorFlowParam("regParam", "auto");
    FactorFlowALS copy = als.copy(new ParamMap().put(als.rank().w(7)));
    assertEquals(Map.of("biases", true, "regParam", "auto"), copy.getFactorFlowParams());
    assertEquals(9, parameters(copy).features());
    assertEquals("auto", parameters(copy).toJson().get("regParam").asText());
    assertEquals(Map.of(), copy.setFactorFlowParams(Map.of()).getFactorFlowParams());
    assertEquals(2, als.getFactorFlowParams().size());
  }
}
