package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * Joins Arrow streams of one schema without decoding them: the schema of the first, the batches of all, and
 * one end mark.
 */
public final class FactorStreams {
  private static final int MARK = 8;

  private FactorStreams() {}

  public static byte[] join(List<byte[]> streams) {
    if (streams.size() == 1) return streams.get(0);
    ByteArrayOutputStream out = new ByteArrayOutputStream(streams.stream().mapToInt(stream -> stream.length).sum());
    for (int at = 0; at < streams.size(); at++) {
      byte[] stream = streams.get(at);
      int from = at == 0 ? 0 : schemaBytes(stream);
      int to = at == streams.size() - 1 ? stream.length : stream.length - MARK;
      out.write(stream, from, to - from);
    }
    return out.toByteArray();
  }

  /**
   * Length of a schema's message: the mark ff ff ff ff, the length of its metadata as u32, and the metadata.
   * It has no body.
   */
  private static int schemaBytes(byte[] stream) {
    return MARK + ByteBuffer.wrap(stream).order(ByteOrder.LITTLE_ENDIAN).getInt(4);
  }
}
