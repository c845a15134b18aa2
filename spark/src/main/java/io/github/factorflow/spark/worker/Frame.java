package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * One message to or from a worker: a JSON object with a type, and bytes that only some types have. Its form:
 * the lengths of header and payload as little-endian u32, then both.
 */
public record Frame(JsonNode header, byte[] payload) {
  private static final int LONGEST_HEADER = 16 << 20;
  private static final int LONGEST_PAYLOAD = 256 << 20;
  private static final ObjectMapper json = new ObjectMapper();

  public String type() {
    return header.path("type").asText();
  }

  public String text(String name) {
    return header.path(name).asText("");
  }

  public long number(String name) {
    return header.path(name).asLong();
  }

  /** The header of a request, without fields. */
  public static ObjectNode request(String type) {
    return JsonNodeFactory.instance.objectNode().put("type", type);
  }

  /** Writes a line of JSON, and flushes. */
  public static void writeLine(OutputStream out, JsonNode object) throws IOException {
    out.write(json.writeValueAsBytes(object));
    out.write('\n');
    out.flush();
  }

  void write(OutputStream out) throws IOException {
    byte[] bytes = json.writeValueAsBytes(header);
    ByteBuffer lengths = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    out.write(lengths.putInt(bytes.length).putInt(payload.length).array());
    out.write(bytes);
    out.write(payload);
  }

  /**
   * The next frame, or null at the end. Throws EOFException if the output ends inside a frame. Other output,
   * such as from a program that is no worker, is refused at its first bytes.
   */
  static Frame read(InputStream in) throws IOException {
    byte[] lengths = in.readNBytes(8);
    if (lengths.length == 0) return null;
    if (lengths.length < 8) throw new EOFException("The worker's output ends inside a frame");
    ByteBuffer buffer = ByteBuffer.wrap(lengths).order(ByteOrder.LITTLE_ENDIAN);
    int header = bounded(buffer.getInt(), LONGEST_HEADER, "header");
    int payload = bounded(buffer.getInt(), LONGEST_PAYLOAD, "payload");
    if (header < 2) throw noFrame("its header has " + header + " bytes");
    JsonNode object = json.readTree(exactly(in, header));
    if (object == null || !object.path("type").isTextual()) throw noFrame("its header has no type");
    return new Frame(object, exactly(in, payload));
  }

  private static int bounded(int length, int most, String name) throws IOException {
    if (length >= 0 && length <= most) return length;
    throw noFrame("its " + name + " would have " + Integer.toUnsignedString(length) + " bytes");
  }

  private static IOException noFrame(String reason) {
    return new IOException("The worker's output is no frame: " + reason);
  }

  private static byte[] exactly(InputStream in, int length) throws IOException {
    // unlike readNBytes(length), this reads without copying pieces together
    byte[] bytes = new byte[length];
    if (in.readNBytes(bytes, 0, length) == length) return bytes;
    throw new EOFException("The worker's output ends inside a frame");
  }
}
