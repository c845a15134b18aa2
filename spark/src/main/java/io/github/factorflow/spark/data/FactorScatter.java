package io.github.factorflow.spark.data;

import java.util.Queue;
import java.util.stream.IntStream;
import scala.Tuple2;

/**
 * Divides a side's rows among partitions by id, as Spark's model does (id modulo partitions), in blocks of
 * about a megabyte. Partition p of this side has the number {@code first + p}.
 */
public final class FactorScatter {

  private final int first;
  private final FactorBlock.Builder[] partitions;
  private final Queue<Tuple2<Integer, FactorBlock>> out;

  public FactorScatter(int rank, int first, int partitions, Queue<Tuple2<Integer, FactorBlock>> out) {
    this.first = first;
    this.out = out;
    this.partitions = IntStream.range(0, partitions)
      .mapToObj(partition -> new FactorBlock.Builder(rank))
      .toArray(FactorBlock.Builder[]::new);
  }

  public void add(FactorBlock block) {
    for (int row = 0; row < block.rows(); row++) {
      int partition = Math.floorMod(block.ids[row], partitions.length);
      if (partitions[partition].add(block.ids[row], block.features, row * block.rank)) flush(partition);
    }
  }

  public void end() {
    for (int partition = 0; partition < partitions.length; partition++)
      if (!partitions[partition].isEmpty()) flush(partition);
  }

  private void flush(int partition) {
    out.add(new Tuple2<>(first + partition, partitions[partition].take()));
  }
}
