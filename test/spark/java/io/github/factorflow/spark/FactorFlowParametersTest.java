package io.github.factorflow.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class FactorFlowParametersTest {

  private static String refused(String name, Object value) {
    return assertThrows(IllegalArgumentException.class, () ->
      FactorFlowParameters.ofValues(Map.of(name, value))
    ).getMessage();
  }

  private static SparkConf conf(String... pairs) {
    SparkConf conf = new SparkConf(false);
    for (int at = 0; at < pairs.length; at += 2) conf.set(
      "spark.factorflow.param." + pairs[at],
      pairs[at + 1]
    );
    return conf;
  }

  @Test
  void areReadFromTheConfigurationByTheirKinds() {
    SparkConf conf = conf(
      "biases",
      "true",
      "regExponent",
      "0.5",
      "cgSteps",
      "8",
      "biasDamping",
      "3,5.5",
      "solver",
      "cg",
      "regOffset",
      "1e1",
      "partitionUsers",
      "1,2"
    );
    assertEquals(
      "{\"biasDamping\":[3,5.5],\"biases\":true,\"cgSteps\":8,\"partitionUsers\":\"1,2\",\"regExponent\":0.5," +
        "\"regOffset\":10,\"solver\":\"cg\"}",
      Settings.parameters(conf).toString()
    );
    assertEquals(1, Settings.of(conf).workers());
  }

  @Test
  void areTakenFromPrograms() {
    assertEquals(
      "{\"biasDamping\":[3,5.5]}",
      FactorFlowParameters.ofValues(Map.of("biasDamping", List.of(3, 5.5))).toString()
    );
    assertEquals(
      "{\"biasDamping\":[3,5]}",
      FactorFlowParameters.ofValues(Map.of("biasDamping", new double[] { 3, 5 })).toString()
    );
    assertEquals(
      "{\"regExponent\":0.1}",
      FactorFlowParameters.ofValues(Map.of("regExponent", 0.1f)).toString()
    );
    assertEquals("{\"alpha\":\"auto\"}", FactorFlowParameters.ofValues(Map.of("alpha", "auto")).toString());
  }

  @Test
  void areRefusedInFactorFlowsWords() {
    assertEquals("biases must be true or false, got 1", refused("biases", 1));
    assertEquals("biases must be true or false, got true", refused("biases", "true"));
    assertEquals("regExponent (ν) must be a number from 0 to 4, got 5", refused("regExponent", 5));
    assertEquals("cgSteps must be auto or a whole number from 1 to 1,000, got 2.5", refused("cgSteps", 2.5));
    assertEquals("unobservedWeight must be a number above 0, got 0", refused("unobservedWeight", 0));
    assertEquals("solver must be auto, cholesky or cg, got lu", refused("solver", "lu"));
    assertEquals(
      "biasDamping must be a number of 0 or more, or two for users and items, got an array",
      refused("biasDamping", List.of(1, 2, 3))
    );
    assertEquals("biases must be true or false, got {}", refused("biases", Map.of()));
  }

  @Test
  void haveNamesOfFactorFlowThatSparkDoesNotHave() {
    String unknown = "unknown parameter bias. There are: algorithm, regParam";
    assertEquals(unknown, refused("bias", true).substring(0, unknown.length()));
    assertEquals("rank is a parameter of Spark's ALS: set it there", refused("rank", 3));
    assertEquals("regParam must be auto here, got 0.1", refused("regParam", 0.1));
    assertEquals("earlyStop needs a validation set", refused("earlyStop", 2).substring(0, 32));
    String ofConf = assertThrows(IllegalArgumentException.class, () ->
      Settings.parameters(conf("biases", "yes"))
    ).getMessage();
    assertEquals("spark.factorflow.param.*: biases must be true or false, got yes", ofConf);
  }
}
