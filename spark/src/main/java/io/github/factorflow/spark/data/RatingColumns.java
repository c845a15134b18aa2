package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FixedWidthVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.VectorUnloader;
import org.apache.arrow.vector.ipc.WriteChannel;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.ipc.message.IpcOption;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;

/**
 * The columns of a batch while it is filled: user: int32, item: int32, rating: float32, all without nulls.
 */
final class RatingColumns implements AutoCloseable {

  static final int ROWS = 65_536;
  private static final ArrowType INT32 = new ArrowType.Int(32, true);
  private static final ArrowType FLOAT32 = new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);
  static final Schema SCHEMA = new Schema(
    List.of(column("user", INT32), column("item", INT32), column("rating", FLOAT32))
  );

  private final IntVector users;
  private final IntVector items;
  private final Float4Vector ratings;
  private final VectorSchemaRoot root;
  private int rows = 0;

  RatingColumns(BufferAllocator allocator) {
    root = VectorSchemaRoot.create(SCHEMA, allocator);
    users = (IntVector) root.getVector(0);
    items = (IntVector) root.getVector(1);
    ratings = (Float4Vector) root.getVector(2);
    for (var vector : root.getFieldVectors()) {
      ((FixedWidthVector) vector).allocateNew(ROWS);
      vector.getValidityBuffer().setOne(0L, ROWS / 8L);
    }
  }

  /**
   * Adds a row; returns true if the batch is full. Values are written directly to the buffers: the vectors'
   * own setters would mark each row as valid.
   */
  boolean add(int user, int item, float rating) {
    users.getDataBuffer().setInt(4L * rows, user);
    items.getDataBuffer().setInt(4L * rows, item);
    ratings.getDataBuffer().setFloat(4L * rows, rating);
    return ++rows == ROWS;
  }

  boolean isEmpty() {
    return rows == 0;
  }

  /** Returns the rows so far as a message; after that the columns are empty. */
  RatingBatch take() {
    root.setRowCount(rows);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(13 * rows + 1024);
    try (ArrowRecordBatch batch = new VectorUnloader(root).getRecordBatch()) {
      MessageSerializer.serialize(new WriteChannel(Channels.newChannel(bytes)), batch, IpcOption.DEFAULT);
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    RatingBatch taken = new RatingBatch(rows, bytes.toByteArray());
    rows = 0;
    for (var vector : root.getFieldVectors()) vector.getValidityBuffer().setOne(0L, ROWS / 8L);
    return taken;
  }

  @Override
  public void close() {
    root.close();
  }

  private static Field column(String name, ArrowType type) {
    return new Field(name, FieldType.notNullable(type), null);
  }
}
