package io.github.factorflow.spark.data;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.util.ArrowUtils$;

/** Converts factors to and from Arrow streams of (id: int32, features: a list of float32). */
public final class FactorCodec {

  private FactorCodec() {}

  /**
   * The rows of one complete stream. Throws IOException if it has other columns, nulls, or rows of another
   * rank.
   */
  public static FactorBlock decode(byte[] stream, int rank) throws IOException {
    try (
      BufferAllocator allocator = allocator();
      ArrowStreamReader reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)
    ) {
      VectorSchemaRoot root = reader.getVectorSchemaRoot();
      List<FactorBlock> batches = new ArrayList<>();
      while (reader.loadNextBatch()) batches.add(batch(root, rank));
      return batches.size() == 1 ? batches.get(0) : join(batches, rank);
    }
  }

  /** One complete stream of a block's rows. */
  public static byte[] encode(FactorBlock block) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(
      4 * (block.features.length + block.rows()) + 4096
    );
    try (
      BufferAllocator allocator = allocator();
      VectorSchemaRoot root = VectorSchemaRoot.create(schema(block.rank), allocator)
    ) {
      IntVector ids = (IntVector) root.getVector(0);
      FixedSizeListVector lists = (FixedSizeListVector) root.getVector(1);
      Float4Vector values = (Float4Vector) lists.getDataVector();
      ids.allocateNew(block.rows());
      lists.setInitialCapacity(block.rows());
      lists.allocateNew();
      values.allocateNew(block.features.length);
      for (int row = 0; row < block.rows(); row++) {
        ids.set(row, block.ids[row]);
        lists.setNotNull(row);
      }
      values.getValidityBuffer().setOne(0L, (block.features.length + 7L) / 8);
      floats(values, block.features.length).put(block.features);
      root.setRowCount(block.rows());
      try (ArrowStreamWriter writer = new ArrowStreamWriter(root, null, Channels.newChannel(bytes))) {
        writer.writeBatch();
        writer.end();
      }
    }
    return bytes.toByteArray();
  }

  private static FactorBlock batch(VectorSchemaRoot root, int rank) throws IOException {
    int rows = root.getRowCount();
    if (!(root.getVector("id") instanceof IntVector ids) || ids.getNullCount() > 0) throw new IOException(
      "factors have no int32 ids"
    );
    FieldVector lists = root.getVector("features");
    FieldVector values;
    if (lists instanceof FixedSizeListVector fixed && fixed.getListSize() == rank) {
      values = fixed.getDataVector();
    } else if (lists instanceof ListVector list) {
      for (int row = 0; row <= rows; row++) {
        if (list.getOffsetBuffer().getInt(4L * row) != row * rank) throw new IOException(
          "factors of row " + row + " are not " + rank
        );
      }
      values = list.getDataVector();
    } else {
      throw new IOException("factors have no lists of " + rank + " features");
    }
    if (!(values instanceof Float4Vector) || values.getValueCount() < rows * rank) throw new IOException(
      "features are no float32"
    );
    int[] id = new int[rows];
    for (int row = 0; row < rows; row++) id[row] = ids.get(row);
    float[] features = new float[rows * rank];
    floats(values, features.length).get(features);
    return new FactorBlock(rank, id, features);
  }

  private static FloatBuffer floats(FieldVector values, int count) {
    return values
      .getDataBuffer()
      .nioBuffer(0, 4 * count)
      .order(ByteOrder.LITTLE_ENDIAN)
      .asFloatBuffer();
  }

  private static FactorBlock join(List<FactorBlock> blocks, int rank) {
    int rows = blocks.stream().mapToInt(FactorBlock::rows).sum();
    int[] ids = new int[rows];
    float[] features = new float[rows * rank];
    int at = 0;
    for (FactorBlock block : blocks) {
      System.arraycopy(block.ids, 0, ids, at, block.rows());
      System.arraycopy(block.features, 0, features, at * rank, block.features.length);
      at += block.rows();
    }
    return new FactorBlock(rank, ids, features);
  }

  private static Schema schema(int rank) {
    Field value = new Field(
      "item",
      FieldType.notNullable(new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE)),
      null
    );
    Field features = new Field(
      "features",
      FieldType.notNullable(new ArrowType.FixedSizeList(rank)),
      List.of(value)
    );
    return new Schema(
      List.of(new Field("id", FieldType.notNullable(new ArrowType.Int(32, true)), null), features)
    );
  }

  private static BufferAllocator allocator() {
    return ArrowUtils$.MODULE$.rootAllocator().newChildAllocator("factorflow-factors", 0, Long.MAX_VALUE);
  }
}
