package io.github.factorflow.spark.version;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class VersionsTest {

  @Test
  void otherVersionsAreRefusedWithTheJarThatFits() {
    for (String spark : new String[] { "4.0.1", "4.3.0" })
      assertDoesNotThrow(() -> Versions.require(spark, "2.13.16"));
    for (String[] other : new String[][] {
      { "3.5.9", "2.12.18" },
      { "3.5.9", "2.13.8" },
      { "5.0.0", "2.13.16" }
    }) {
      String message = assertThrows(UnsupportedOperationException.class, () ->
        Versions.require(other[0], other[1])
      ).getMessage();
      assertTrue(
        message.contains("Spark " + other[0]) && message.contains("factorflow-spark-3.5_2.12"),
        message
      );
    }
  }
}
