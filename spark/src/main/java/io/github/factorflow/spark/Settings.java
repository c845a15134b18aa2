package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/**
 * {@code spark.factorflow.*} of the application's own configuration. A session's configuration is never read:
 * a client of a server could
 * otherwise choose the program that the server runs.
 *
 * @param node path of Node, or null: the executable starts itself
 * @param executable path of FactorFlow's command, or null: that of an archive named factorflow, else the one on PATH
 * @param device auto (the task's GPUs, else the processor), cpu, gpu, or gpu:0,1
 * @param cores threads of a worker; 0: the task's cores, in local mode all
 * @param memory bytes for a worker, or 0: what the executor's memory overhead leaves, where there is a limit
 * @param workers hosts that train together
 * @param timeout milliseconds without a sign of life after which a worker is ended
 * @param recommend true: workers search the recommendations of models
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
  boolean recommend,
  boolean half
) implements Serializable {
  public enum Exchange {
    AUTO,
    BROADCAST,
    SHUFFLE,
    EQUATIONS
  }

  public static final String PREFIX = "spark.factorflow.";
  private static final String PARAMETER = "param.";
  private static final Map<String, String> KEYS = Map.of(
    "node",
    "",
    "executable",
    "",
    "device",
    "auto",
    "cores",
    "0",
    "memory",
    "0",
    "workers",
    "1",
    "exchange",
    "auto",
    "timeout",
    "30s",
    "recommend",
    "true",
    "exchangePrecision",
    "float16"
  );

  public static Settings of(SparkConf conf) {
    for (Tuple2<String, String> entry : conf.getAllWithPrefix(PREFIX)) {
      if (!entry._1().startsWith(PARAMETER) && !KEYS.containsKey(entry._1())) {
        throw new IllegalArgumentException(
          PREFIX +
            entry._1() +
            " is no setting of FactorFlow. It has " +
            String.join(", ", new TreeSet<>(KEYS.keySet())) +
            " and " +
            PARAMETER +
            "NAME"
        );
      }
    }
    String device = text(conf, "device");
    if (!device.matches("auto|cpu|gpu|gpu:\\d+(,\\d+)*")) throw refused(
      "device",
      device,
      "auto, cpu, gpu, or gpu with indices such as gpu:0,1"
    );
    return new Settings(
      emptyToNull(text(conf, "node")),
      emptyToNull(text(conf, "executable")),
      device,
      number(conf, "cores", 0),
      bytes(conf),
      number(conf, "workers", 1),
      exchange(text(conf, "exchange")),
      timeout(conf),
      flag(conf, "recommend"),
      half(text(conf, "exchangePrecision"))
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
    return conf.get(PREFIX + key, KEYS.get(key));
  }

  private static boolean flag(SparkConf conf, String key) {
    String text = text(conf, key);
    if (!text.matches("true|false")) throw refused(key, text, "true or false");
    return text.equals("true");
  }

  private static int number(SparkConf conf, String key, int least) {
    String text = text(conf, key);
    if (!text.matches("\\d{1,6}") || Integer.parseInt(text) < least) throw refused(
      key,
      text,
      "a whole number from " + least
    );
    return Integer.parseInt(text);
  }

  private static long bytes(SparkConf conf) {
    try {
      return conf.getSizeAsBytes(PREFIX + "memory", KEYS.get("memory"));
    } catch (NumberFormatException failure) {
      throw refused("memory", text(conf, "memory"), "a size such as 4g");
    }
  }

  private static long timeout(SparkConf conf) {
    long millis = -1;
    try {
      millis = conf.getTimeAsMs(PREFIX + "timeout", KEYS.get("timeout"));
    } catch (NumberFormatException failure) {
      // refused below
    }
    if (millis < 1000) throw refused(
      "timeout",
      text(conf, "timeout"),
      "a time of a second or more such as 30s"
    );
    return millis;
  }

  private static Exchange exchange(String text) {
    return switch (text) {
      case "auto" -> Exchange.AUTO;
      case "broadcast" -> Exchange.BROADCAST;
      case "shuffle" -> Exchange.SHUFFLE;
      case "equations" -> Exchange.EQUATIONS;
      default -> throw refused("exchange", text, "auto, broadcast, shuffle or equations");
    };
  }

  private static boolean half(String text) {
    return switch (text) {
      case "float16" -> true;
      case "float32" -> false;
      default -> throw refused("exchangePrecision", text, "float16 or float32");
    };
  }

  private static IllegalArgumentException refused(String key, String value, String allowed) {
    return new IllegalArgumentException(PREFIX + key + " is " + value + ". Give " + allowed);
  }

  private static String emptyToNull(String text) {
    return text.isEmpty() ? null : text;
  }
}
