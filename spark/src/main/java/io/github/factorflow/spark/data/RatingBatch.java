package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;

/**
 * Some ratings as one record batch message of Arrow's stream format, in the schema of {@link RatingEncoder}.
 * A stream of ratings has a start, such messages, and an end.
 *
 * <p>A class, since Kryo as in Spark 3.5 cannot copy records.
 */
public final class RatingBatch implements Serializable {

  private static final long serialVersionUID = 1;
  private static final byte[] schema = schema();
  private static final byte[] marker = { -1, -1, -1, -1, 0, 0, 0, 0 };
  public final int rows;
  public final byte[] message;

  RatingBatch(int rows, byte[] message) {
    this.rows = rows;
    this.message = message;
  }

  public static void start(OutputStream out) throws IOException {
    out.write(schema);
  }

  public static void end(OutputStream out) throws IOException {
    out.write(marker);
  }

  /** A complete stream of this batch. */
  public byte[] stream() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(schema.length + message.length + marker.length);
    bytes.writeBytes(schema);
    bytes.writeBytes(message);
    bytes.writeBytes(marker);
    return bytes.toByteArray();
  }

  private static byte[] schema() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(bytes)), RatingEncoder.SCHEMA);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }
}
