package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * {@code spark.factorflow.*} of the application's own configuration. A session's configuration is never read:
 * a client of a server could otherwise choose the program that the server runs.
 *
 * @param node path of Node, or null: the executable starts itself
 * @param executable path of FactorFlow's command, or null: that of an archive named factorflow, else the one
 *     on PATH
 * @param device auto (the task's GPUs, else the processor), cpu, gpu, or gpu:0,1
 * @param cores threads of a worker; 0: the task's cores, in local mode all
 * @param memory bytes for a worker, or 0: what the executor's memory overhead leaves, where there is a limit
 * @param workers hosts that train together
 * @param timeout milliseconds without a sign of life after which a worker is ended
 * @param recommend true: FactorFlow computes the recommendations of models, small ones in the driver; workers:
 *     all of them in workers; false: Spark's own code
 * @param exchange what hosts exchange: auto, broadcast, shuffle or equations
 * @param half true: hosts exchange rows in float16, false: in float32
 */
public record Settings(
  String node,
  String executable,
  String device,
  int cores,
  long memory,
  int workers,
  Exchange exchange,
  long timeout,
  Recommend recommend,
  boolean half
) implements Serializable {
  public enum Exchange {
    AUTO,
    BROADCAST,
    SHUFFLE,
    EQUATIONS
  }

  public enum Recommend {
    TRUE,
    WORKERS,
    FALSE
  }

  public static final String PREFIX = "spark.factorflow.";
  private static final String PARAMETER = "param.";
  private static final Map<String, String> DEFAULTS = Map.of(
    "node", "",
    "executable", "",
    "device", "auto",
    "cores", "0",
    "memory", "0",
    "workers", "1",
    "exchange", "auto",
    "timeout", "30s",
    "recommend", "true",
    "exchangePrecision", "float16"
  );

  public static Settings of(SparkConf conf) {
    String known = String.join(", ", new TreeSet<>(DEFAULTS.keySet())) + " and " + PARAMETER + "NAME";
    for (Tuple2<String, String> entry : conf.getAllWithPrefix(PREFIX)) {
      String key = entry._1();
      if (!key.startsWith(PARAMETER) && !DEFAULTS.containsKey(key)) throw new IllegalArgumentException(
        PREFIX + key + " is no setting of FactorFlow. It has " + known
      );
    }
    String gpus = "auto, cpu, gpu, or gpu with indices such as gpu:0,1";
    String exchanges = "auto, broadcast, shuffle or equations";
    return new Settings(
      emptyToNull(text(conf, "node")),
      emptyToNull(text(conf, "executable")),
      text(conf, "device", "auto|cpu|gpu|gpu:\\d+(,\\d+)*", gpus),
      number(conf, "cores", 0),
      bytes(conf),
      number(conf, "workers", 1),
      exchange(text(conf, "exchange", "auto|broadcast|shuffle|equations", exchanges)),
      timeout(conf),
      recommend(text(conf, "recommend", "true|workers|false", "true, workers or false")),
      text(conf, "exchangePrecision", "float16|float32", "float16 or float32").equals("float16")
    );
  }

  /** FactorFlow's own parameters in the application's configuration: {@code spark.factorflow.param.NAME}. */
  static ObjectNode parameters(SparkConf conf) {
    Map<String, String> texts = new TreeMap<>();
    for (Tuple2<String, String> entry : conf.getAllWithPrefix(PREFIX + PARAMETER))
      texts.put(entry._1(), entry._2());
    try {
      return FactorFlowParameters.ofTexts(texts);
    } catch (IllegalArgumentException wrong) {
      throw new IllegalArgumentException(PREFIX + PARAMETER + "*: " + wrong.getMessage(), wrong);
    }
  }

  private static String text(SparkConf conf, String key) {
    return conf.get(PREFIX + key, DEFAULTS.get(key));
  }

  /** {@code allowed}: the texts that match, in words. */
  private static String text(SparkConf conf, String key, String pattern, String allowed) {
    String text = text(conf, key);
    if (!text.matches(pattern)) throw refused(conf, key, allowed);
    return text;
  }

  private static int number(SparkConf conf, String key, int least) {
    String allowed = "a whole number from " + least;
    int number = Integer.parseInt(text(conf, key, "\\d{1,6}", allowed));
    if (number < least) throw refused(conf, key, allowed);
    return number;
  }

  private static long bytes(SparkConf conf) {
    try {
      return conf.getSizeAsBytes(PREFIX + "memory", DEFAULTS.get("memory"));
    } catch (NumberFormatException failure) {
      throw refused(conf, "memory", "a size such as 4g");
    }
  }

  private static long timeout(SparkConf conf) {
    try {
      long millis = conf.getTimeAsMs(PREFIX + "timeout", DEFAULTS.get("timeout"));
      if (millis >= 1000) return millis;
    } catch (NumberFormatException failure) {
      // refused like a time that is too short
    }
    throw refused(conf, "timeout", "a time of a second or more such as 30s");
  }

  private static IllegalArgumentException refused(SparkConf conf, String key, String allowed) {
    return new IllegalArgumentException(PREFIX + key + " is " + text(conf, key) + ". Give " + allowed);
  }

  private static Exchange exchange(String text) {
    return Exchange.valueOf(text.toUpperCase(Locale.ROOT));
  }

  private static Recommend recommend(String text) {
    return Recommend.valueOf(text.toUpperCase(Locale.ROOT));
  }

  private static String emptyToNull(String text) {
    return text.isEmpty() ? null : text;
  }
}
