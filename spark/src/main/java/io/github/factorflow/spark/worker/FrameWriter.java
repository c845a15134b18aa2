package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Writes messages to a worker: lines of JSON, and frames in the format that {@link FrameReader} reads. */
public final class FrameWriter {

  private static final ObjectMapper json = new ObjectMapper();
  private static final byte[] nothing = new byte[0];
  private final OutputStream out;

  public FrameWriter(OutputStream out) {
    this.out = out;
  }

  public void line(JsonNode object) throws IOException {
    out.write(json.writeValueAsBytes(object));
    out.write('\n');
    out.flush();
  }

  public void frame(JsonNode header) throws IOException {
    frame(header, nothing);
    out.flush();
  }

  public void frame(JsonNode header, byte[] payload) throws IOException {
    byte[] bytes = json.writeValueAsBytes(header);
    out.write(
      ByteBuffer.allocate(8)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(bytes.length)
        .putInt(payload.length)
        .array()
    );
    out.write(bytes);
    out.write(payload);
  }
}
