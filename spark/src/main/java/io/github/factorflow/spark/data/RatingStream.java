package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.MessageSerializer;

/**
 * The start and the end of an Arrow stream of ratings; the messages of {@link RatingBatch} are sent between
 * them.
 */
public final class RatingStream {

  private static final byte[] schema = schema();
  private static final byte[] marker = { -1, -1, -1, -1, 0, 0, 0, 0 };

  private RatingStream() {}

  public static void start(OutputStream out) throws IOException {
    out.write(schema);
  }

  public static void end(OutputStream out) throws IOException {
    out.write(marker);
  }

  /** A complete stream of one batch. */
  public static byte[] whole(RatingBatch batch) {
    byte[] bytes = new byte[schema.length + batch.message.length + marker.length];
    System.arraycopy(schema, 0, bytes, 0, schema.length);
    System.arraycopy(batch.message, 0, bytes, schema.length, batch.message.length);
    System.arraycopy(marker, 0, bytes, schema.length + batch.message.length, marker.length);
    return bytes;
  }

  private static byte[] schema() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(bytes)), RatingColumns.SCHEMA);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }
}
