package io.github.factorflow.spark.data;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.Queue;
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
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.PairFlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;

/**
 * Encodes a partition's rows (user, item, rating) as batches, each with the number of its block. With {@code
 * hosts} of 1 there is only block 0. With more hosts each rating is sent twice: to its user's block 0 ..
 * hosts - 1, and to its item's block hosts .. 2 hosts - 1.
 */
public record RatingEncoder(
  int hosts
) implements PairFlatMapFunction<Iterator<InternalRow>, Integer, RatingBatch> {
  static final int ROWS = 65_536;
  static final Schema SCHEMA = new Schema(
    List.of(
      Arrow.column("user", Arrow.INT32),
      Arrow.column("item", Arrow.INT32),
      Arrow.column("rating", Arrow.FLOAT32)
    )
  );

  @Override
  public Iterator<Tuple2<Integer, RatingBatch>> call(Iterator<InternalRow> rows) {
    return new Batches(rows, hosts);
  }

  /** The block of an id. Ids with a constant distance are distributed over all blocks too. */
  static int blockOf(int id, int hosts) {
    int mixed = id * 0x9e3779b1;
    return Math.floorMod(mixed ^ (mixed >>> 15), hosts);
  }

  private static final class Batches implements Iterator<Tuple2<Integer, RatingBatch>> {

    private final Iterator<InternalRow> rows;
    private final int hosts;
    private final BufferAllocator allocator = Arrow.allocator("ratings");
    private final Columns[] blocks;
    private final Queue<Tuple2<Integer, RatingBatch>> ready = new ArrayDeque<>();
    private boolean open = true;

    Batches(Iterator<InternalRow> rows, int hosts) {
      this.rows = rows;
      this.hosts = hosts;
      blocks = new Columns[hosts == 1 ? 1 : 2 * hosts];
      TaskContext context = TaskContext.get();
      if (context != null) context.addTaskCompletionListener((TaskCompletionListener) done -> close());
    }

    @Override
    public boolean hasNext() {
      if (ready.isEmpty() && open) fill();
      return !ready.isEmpty();
    }

    @Override
    public Tuple2<Integer, RatingBatch> next() {
      return ready.remove();
    }

    private void fill() {
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        int user = row.getInt(0);
        int item = row.getInt(1);
        float rating = row.getFloat(2);
        if (hosts == 1) {
          add(0, user, item, rating);
        } else {
          add(blockOf(user, hosts), user, item, rating);
          add(hosts + blockOf(item, hosts), user, item, rating);
        }
        if (!ready.isEmpty()) return;
      }
      for (int block = 0; block < blocks.length; block++) {
        if (blocks[block] != null && blocks[block].rows > 0) ready.add(
          new Tuple2<>(block, blocks[block].take())
        );
      }
      close();
    }

    private void add(int block, int user, int item, float rating) {
      if (blocks[block] == null) blocks[block] = new Columns(allocator);
      if (blocks[block].add(user, item, rating)) ready.add(new Tuple2<>(block, blocks[block].take()));
    }

    private void close() {
      if (!open) return;
      open = false;
      for (Columns columns : blocks) if (columns != null) columns.root.close();
      allocator.close();
    }
  }

  /** A batch while it is filled. */
  private static final class Columns {

    private final VectorSchemaRoot root;
    private final IntVector users;
    private final IntVector items;
    private final Float4Vector ratings;
    private int rows = 0;

    Columns(BufferAllocator allocator) {
      root = VectorSchemaRoot.create(SCHEMA, allocator);
      users = (IntVector) root.getVector(0);
      items = (IntVector) root.getVector(1);
      ratings = (Float4Vector) root.getVector(2);
      for (var vector : root.getFieldVectors()) ((FixedWidthVector) vector).allocateNew(ROWS);
      clear();
    }

    private void clear() {
      rows = 0;
      for (var vector : root.getFieldVectors()) vector.getValidityBuffer().setOne(0L, ROWS / 8L);
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
      clear();
      return taken;
    }
  }
}
