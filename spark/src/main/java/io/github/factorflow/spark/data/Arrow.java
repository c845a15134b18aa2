package io.github.factorflow.spark.data;

import io.github.factorflow.spark.worker.FactorFlowException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.spark.sql.util.ArrowUtils$;

/** Memory, columns and streams of Arrow. */
public final class Arrow {

  static final ArrowType INT32 = new ArrowType.Int(32, true);
  static final ArrowType FLOAT32 = new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);

  private Arrow() {}

  /** A column without nulls. */
  static Field column(String name, ArrowType type, Field... children) {
    return new Field(name, FieldType.notNullable(type), List.of(children));
  }

  static BufferAllocator allocator(String what) {
    return ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("factorflow-" + what, 0, Long.MAX_VALUE);
  }

  /** Reads one record batch, whose memory is freed afterwards. */
  public interface BatchReader<T> {
    T read(VectorSchemaRoot batch) throws IOException;
  }

  /** The batches of one complete stream. {@code what} a worker gave: a word for the message of a failure. */
  public static <T> List<T> read(byte[] stream, String what, BatchReader<T> reader) {
    try (
      BufferAllocator allocator = allocator(what);
      ArrowStreamReader batches = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)
    ) {
      List<T> all = new ArrayList<>();
      while (batches.loadNextBatch()) all.add(reader.read(batches.getVectorSchemaRoot()));
      return all;
    } catch (IOException failure) {
      throw new FactorFlowException(
        "FactorFlow's worker gave " + what + " that cannot be read: " + failure.getMessage(),
        failure
      );
    }
  }
}
