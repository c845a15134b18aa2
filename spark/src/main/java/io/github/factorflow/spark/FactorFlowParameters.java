package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * FactorFlow's parameters of ALS and SGD that Spark's ALS does not have, by the names of FactorFlow's
 * options. Names and single values are checked here; combinations are checked by the worker, before it
 * trains.
 */
final class FactorFlowParameters {

  private static final JsonNodeFactory json = JsonNodeFactory.instance;
  private static final String OF_SPARK = "of Spark";
  private static final String HELD_OUT = "held out";
  /** Kind, range and meaning of each parameter; generated from FactorFlow's own table. */
  private static final JsonNode table = table();

  private FactorFlowParameters() {}

  /** Values of the application's configuration, which are texts: "true", "0.5", "3,5". */
  static ObjectNode ofTexts(Map<String, String> texts) {
    ObjectNode values = json.objectNode();
    texts.forEach((name, text) ->
      values.set(name, checked(name, ofText(described(name).path("kind").asText(), text)))
    );
    return values;
  }

  /** Values of a program: booleans, numbers, strings, and lists or arrays of two numbers. */
  static ObjectNode ofValues(Map<String, ?> given) {
    ObjectNode values = json.objectNode();
    given.forEach((name, value) -> values.set(name, checked(name, ofValue(name, value))));
    return values;
  }

  /** Throws IllegalArgumentException for a parameter that the chosen algorithm does not have. */
  static void requireOneAlgorithm(ObjectNode values) {
    String algorithm = values.path("algorithm").asText("als");
    values
      .fieldNames()
      .forEachRemaining(name -> {
        // SGD's own default is taken
        if (name.equals("regParam")) return;
        String of = described(name).path("of").asText(algorithm);
        if (!of.equals(algorithm)) throw new IllegalArgumentException(
          name + " is a parameter of " + of + ", and algorithm is " + algorithm + ". Leave one of them out"
        );
      });
  }

  private static JsonNode ofText(String kind, String text) {
    if (kind.equals("toggle") && text.matches("true|false")) return json.booleanNode(text.equals("true"));
    if (kind.equals("choice") || kind.equals("text")) return json.textNode(text);
    String[] parts = text.split(",", -1);
    if (parts.length == 1) return number(text);
    ArrayNode list = json.arrayNode();
    for (String part : parts) list.add(number(part));
    return list;
  }

  private static JsonNode number(String text) {
    try {
      return ofNumber(Double.parseDouble(text.strip()));
    } catch (NumberFormatException other) {
      return json.textNode(text);
    }
  }

  private static JsonNode ofNumber(double value) {
    return value == Math.rint(value) && Math.abs(value) < 1L << 53
      ? json.numberNode((long) value)
      : json.numberNode(value);
  }

  private static JsonNode ofValue(String name, Object value) {
    if (value instanceof Boolean flag) return json.booleanNode(flag);
    if (value instanceof Float number) return ofNumber(Double.parseDouble(number.toString()));
    if (value instanceof Number number) return ofNumber(number.doubleValue());
    if (value instanceof String text) return json.textNode(text);
    if (value instanceof double[] pair) return ofValue(name, Arrays.stream(pair).boxed().toList());
    if (value instanceof List<?> values) {
      ArrayNode list = json.arrayNode();
      for (Object one : values) list.add(ofValue(name, one));
      return list;
    }
    throw new IllegalArgumentException(
      name + " must be " + described(name).path("must").asText() + ", got " + value
    );
  }

  private static JsonNode checked(String name, JsonNode value) {
    JsonNode described = described(name);
    if (isOf(described, value)) return value;
    String called = described.path("called").asText();
    String got = value.isArray() ? "an array" : value.asText();
    throw new IllegalArgumentException(
      called + " must be " + described.path("must").asText() + ", got " + got
    );
  }

  private static JsonNode described(String name) {
    JsonNode described = table.get(name);
    if (described == null) throw new IllegalArgumentException(
      "unknown parameter " + name + ". There are: " + String.join(", ", names())
    );
    String kind = described.path("kind").asText();
    if (kind.equals(OF_SPARK)) throw new IllegalArgumentException(
      name + " is a parameter of Spark's ALS: set it there"
    );
    if (kind.equals(HELD_OUT)) throw new IllegalArgumentException(
      name + " needs a validation set, which Spark's fit does not have. " +
      "CrossValidator and TrainValidationSplit compare models"
    );
    return described;
  }

  private static List<String> names() {
    List<String> names = new ArrayList<>();
    table.fields().forEachRemaining(entry -> {
      String kind = entry.getValue().path("kind").asText();
      if (!kind.equals(OF_SPARK) && !kind.equals(HELD_OUT)) names.add(entry.getKey());
    });
    return names;
  }

  private static boolean isOf(JsonNode described, JsonNode value) {
    String kind = described.path("kind").asText();
    return switch (kind) {
      case "toggle" -> value.isBoolean();
      case "choice" -> has(described.path("choices"), value);
      case "text" -> value.isTextual() && !value.asText().isEmpty();
      case "one or two numbers" -> value.isArray()
        ? value.size() == 2 && isNumber(described, value.get(0)) && isNumber(described, value.get(1))
        : isNumber(described, value);
      default -> {
        boolean auto = kind.endsWith("or auto") && value.asText().equals("auto");
        boolean fits = value.isIntegralNumber() || !kind.startsWith("whole");
        yield auto || (fits && isNumber(described, value));
      }
    };
  }

  private static boolean has(JsonNode choices, JsonNode value) {
    for (JsonNode choice : choices) if (choice.equals(value)) return true;
    return false;
  }

  /** True for a number in the described range. */
  private static boolean isNumber(JsonNode described, JsonNode value) {
    double number = value.asDouble();
    return (
      value.isNumber() &&
      Double.isFinite(number) &&
      !(described.has("least") && number < described.get("least").asDouble()) &&
      !(described.has("most") && number > described.get("most").asDouble()) &&
      !(described.has("above") && number <= described.get("above").asDouble())
    );
  }

  private static JsonNode table() {
    try (InputStream in = FactorFlowParameters.class.getResourceAsStream("als-parameters.json")) {
      return new ObjectMapper().readTree(in);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
  }
}
