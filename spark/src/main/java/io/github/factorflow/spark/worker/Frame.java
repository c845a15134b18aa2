package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;

/** One message of a worker: a JSON object with a type, and bytes that only some types have. */
public record Frame(JsonNode header, byte[] payload) {
  public String type() {
    return header.path("type").asText();
  }

  public String text(String name) {
    return header.path(name).asText("");
  }

  public long number(String name) {
    return header.path(name).asLong();
  }
}
