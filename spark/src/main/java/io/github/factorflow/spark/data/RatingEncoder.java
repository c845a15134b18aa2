package io.github.factorflow.spark.data;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.PairFlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;

/**
 * Encodes a partition's rows (user, item, rating) as batches, each with the number of its block. With {@code
 * hosts} of 1 there is only block 0. With more hosts each rating is sent twice: to its user's block 0 ..
 * hosts - 1, and to its item's block hosts .. 2 hosts - 1.
 */
public final class RatingEncoder implements PairFlatMapFunction<Iterator<InternalRow>, Integer, RatingBatch> {

  private static final long serialVersionUID = 1;
  private final int hosts;

  public RatingEncoder(int hosts) {
    this.hosts = hosts;
  }

  @Override
  public Iterator<Tuple2<Integer, RatingBatch>> call(Iterator<InternalRow> rows) {
    return new Batches(rows);
  }

  /** The block of an id. Ids with a constant distance are distributed over all blocks too. */
  static int blockOf(int id, int hosts) {
    int mixed = id * 0x9e3779b1;
    return Math.floorMod(mixed ^ (mixed >>> 15), hosts);
  }

  private final class Batches implements Iterator<Tuple2<Integer, RatingBatch>> {

    private final Iterator<InternalRow> rows;
    private final BufferAllocator allocator = ArrowUtils$.MODULE$.rootAllocator().newChildAllocator(
      "factorflow-ratings",
      0,
      Long.MAX_VALUE
    );
    private final RatingColumns[] blocks = new RatingColumns[hosts == 1 ? 1 : 2 * hosts];
    private final Queue<Tuple2<Integer, RatingBatch>> ready = new ArrayDeque<>();
    private boolean open = true;

    Batches(Iterator<InternalRow> rows) {
      this.rows = rows;
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
        if (blocks[block] != null && !blocks[block].isEmpty()) ready.add(
          new Tuple2<>(block, blocks[block].take())
        );
      }
      close();
    }

    private void add(int block, int user, int item, float rating) {
      if (blocks[block] == null) blocks[block] = new RatingColumns(allocator);
      if (blocks[block].add(user, item, rating)) ready.add(new Tuple2<>(block, blocks[block].take()));
    }

    private void close() {
      if (!open) return;
      open = false;
      for (RatingColumns columns : blocks) if (columns != null) columns.close();
      allocator.close();
    }
  }
}
