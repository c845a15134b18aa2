package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Schema;
import scala.Tuple2;

/**
 * Some rows of a side's factors: row i has the id ids[i] and features[i rank] .. features[(i + 1) rank - 1].
 * Workers send and get them as Arrow streams of (id: int32, features: a list of float32).
 *
 * <p>A class, since Kryo as in Spark 3.5 cannot copy records.
 */
public final class FactorBlock implements Serializable {

  private static final long serialVersionUID = 1;
  public final int rank;
  public final int[] ids;
  public final float[] features;

  public FactorBlock(int rank, int[] ids, float[] features) {
    this.rank = rank;
    this.ids = ids;
    this.features = features;
  }

  public int rows() {
    return ids.length;
  }

  /** Rows as Spark's model holds them. */
  public Iterator<Tuple2<Object, float[]>> tuples() {
    return IntStream.range(0, ids.length)
      .mapToObj(row ->
        new Tuple2<Object, float[]>(ids[row], Arrays.copyOfRange(features, row * rank, (row + 1) * rank))
      )
      .iterator();
  }

  /**
   * The blocks of one complete stream. Throws FactorFlowException if it has other columns, nulls, or rows of
   * another rank.
   */
  public static List<FactorBlock> decode(byte[] stream, int rank) {
    return Arrow.read(stream, "factors", batch -> of(batch, rank));
  }

  private static FactorBlock of(VectorSchemaRoot batch, int rank) throws IOException {
    int rows = batch.getRowCount();
    if (!(batch.getVector("id") instanceof IntVector ids) || ids.getNullCount() > 0) throw new IOException(
      "factors have no int32 ids"
    );
    FieldVector lists = batch.getVector("features");
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

  /** One complete stream of the rows. */
  public byte[] encode() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(4 * (features.length + rows()) + 4096);
    ArrowType list = new ArrowType.FixedSizeList(rank);
    Schema schema = new Schema(
      List.of(
        Arrow.column("id", Arrow.INT32),
        Arrow.column("features", list, Arrow.column("item", Arrow.FLOAT32))
      )
    );
    try (
      BufferAllocator allocator = Arrow.allocator("factors");
      VectorSchemaRoot root = VectorSchemaRoot.create(schema, allocator);
      ArrowStreamWriter writer = new ArrowStreamWriter(root, null, Channels.newChannel(bytes))
    ) {
      IntVector ids = (IntVector) root.getVector(0);
      FixedSizeListVector lists = (FixedSizeListVector) root.getVector(1);
      Float4Vector values = (Float4Vector) lists.getDataVector();
      ids.allocateNew(rows());
      lists.setInitialCapacity(rows());
      lists.allocateNew();
      values.allocateNew(features.length);
      for (int row = 0; row < rows(); row++) {
        ids.set(row, this.ids[row]);
        lists.setNotNull(row);
      }
      values.getValidityBuffer().setOne(0L, (features.length + 7L) / 8);
      floats(values, features.length).put(features);
      root.setRowCount(rows());
      writer.writeBatch();
      writer.end();
    } catch (IOException failure) {
      throw new UncheckedIOException(failure);
    }
    return bytes.toByteArray();
  }

  private static FloatBuffer floats(FieldVector values, int count) {
    return values.getDataBuffer().nioBuffer(0, 4 * count).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
  }

  /** Collects rows for blocks of about a megabyte. */
  public static final class Builder {

    private static final int FLOATS = 1 << 18;
    private final int rank;
    private final int most;
    private int[] ids = new int[0];
    private float[] features = new float[0];
    private int rows = 0;

    public Builder(int rank) {
      this.rank = rank;
      most = Math.max(64, FLOATS / rank);
    }

    /** Adds the row that starts at {@code from}; returns true if the block is full. */
    public boolean add(int id, float[] values, int from) {
      if (rows == ids.length) {
        int larger = Math.min(most, Math.max(64, 2 * rows));
        ids = Arrays.copyOf(ids, larger);
        features = Arrays.copyOf(features, larger * rank);
      }
      ids[rows] = id;
      System.arraycopy(values, from, features, rows * rank, rank);
      return ++rows == most;
    }

    public boolean isEmpty() {
      return rows == 0;
    }

    /** Returns the rows so far as a block; after that the builder is empty. */
    public FactorBlock take() {
      int[] taken = Arrays.copyOf(ids, rows);
      FactorBlock block = new FactorBlock(rank, taken, Arrays.copyOf(features, rows * rank));
      rows = 0;
      return block;
    }
  }
}
