package io.github.factorflow.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class SettingsTest {

  private static Settings settings(String... pairs) {
    SparkConf conf = new SparkConf(false);
    for (int at = 0; at < pairs.length; at += 2) conf.set(Settings.PREFIX + pairs[at], pairs[at + 1]);
    return Settings.of(conf);
  }

  @Test
  void haveDefaults() {
    Settings settings = settings();
    assertNull(settings.node());
    assertNull(settings.executable());
    assertEquals("auto", settings.device());
    assertEquals(0, settings.cores());
    assertEquals(0, settings.memory());
    assertEquals(1, settings.workers());
    assertEquals(Settings.Exchange.AUTO, settings.exchange());
    assertEquals(30_000, settings.timeout());
    assertEquals(Settings.Recommend.TRUE, settings.recommend());
    assertTrue(settings.half());
  }

  @Test
  void areRead() {
    Settings settings = settings(
      "node",
      "/n",
      "executable",
      "/e",
      "device",
      "gpu:0,3",
      "cores",
      "4",
      "memory",
      "2g",
      "workers",
      "3",
      "exchange",
      "shuffle",
      "timeout",
      "5s",
      "recommend",
      "false",
      "exchangePrecision",
      "float32"
    );
    assertEquals(Settings.Recommend.WORKERS, settings("recommend", "workers").recommend());
    assertEquals(Settings.Exchange.EQUATIONS, settings("exchange", "equations").exchange());
    assertEquals(
      new Settings(
        "/n",
        "/e",
        "gpu:0,3",
        4,
        2L << 30,
        3,
        Settings.Exchange.SHUFFLE,
        5000,
        Settings.Recommend.FALSE,
        false
      ),
      settings
    );
  }

  @Test
  void thatCannotActAreRefusedWithWhatIsAllowed() {
    for (String[] wrong : new String[][] {
      { "device", "tpu" },
      { "device", "gpu:" },
      { "cores", "-1" },
      { "cores", "many" },
      { "memory", "much" },
      { "workers", "0" },
      { "exchange", "mail" },
      { "timeout", "0" },
      { "timeout", "soon" },
      { "recommend", "no" },
      { "exchangePrecision", "float8" },
      { "exectuable", "/e" }
    }) {
      String message = assertThrows(IllegalArgumentException.class, () -> settings(wrong)).getMessage();
      assertTrue(message.startsWith("spark.factorflow." + wrong[0]), message);
    }
  }
}
