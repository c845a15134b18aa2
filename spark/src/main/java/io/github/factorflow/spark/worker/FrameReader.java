package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads frames from a worker's standard output: the lengths of header and payload as little-endian u32, then
 * both. Other output, such as from a program that is no worker, is refused at its first bytes.
 */
public final class FrameReader {

  private static final int LONGEST_HEADER = 16 << 20;
  private static final int LONGEST_PAYLOAD = 256 << 20;
  private static final ObjectMapper json = new ObjectMapper();
  private final InputStream in;

  public FrameReader(InputStream in) {
    this.in = in;
  }

  /** The next frame, or null at the end. Throws EOFException if the output ends inside a frame. */
  public Frame next() throws IOException {
    byte[] lengths = in.readNBytes(8);
    if (lengths.length == 0) return null;
    if (lengths.length < 8) throw new EOFException("The worker's output ends inside a frame");
    ByteBuffer buffer = ByteBuffer.wrap(lengths).order(ByteOrder.LITTLE_ENDIAN);
    int header = bounded(buffer.getInt(), LONGEST_HEADER, "header");
    int payload = bounded(buffer.getInt(), LONGEST_PAYLOAD, "payload");
    if (header < 2) throw new IOException(
      "The worker's output is no frame: its header has " + header + " bytes"
    );
    JsonNode object = json.readTree(exactly(header));
    if (object == null || !object.path("type").isTextual()) throw new IOException(
      "The worker's output is no frame: its header has no type"
    );
    return new Frame(object, exactly(payload));
  }

  private static int bounded(int length, int most, String name) throws IOException {
    if (length < 0 || length > most) throw new IOException(
      "The worker's output is no frame: its " +
        name +
        " would have " +
        Integer.toUnsignedString(length) +
        " bytes"
    );
    return length;
  }

  private byte[] exactly(int length) throws IOException {
    // unlike readNBytes(length), this reads without copying pieces together
    byte[] bytes = new byte[length];
    if (in.readNBytes(bytes, 0, length) < length) throw new EOFException("The worker's output ends inside a frame");
    return bytes;
  }
}
