package io.github.factorflow.spark.rows;

import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.version.Scala;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction2;

/**
 * Sends the rows of a solved block, or its share of equations. Each stream's key is from * hosts + to: the
 * numbers of this block, and of the block of the other side that needs the stream.
 */
final class Sending
  extends AbstractFunction2<Iterator<RatingBatch>, Iterator<SolvedBlock>, Iterator<Tuple2<Integer, byte[]>>>
  implements Serializable
{

  private static final long serialVersionUID = 1;
  private final RowTask task;
  private final Executors executors;
  private final int hosts;

  Sending(RowTask task, Executors executors, int hosts) {
    this.task = task;
    this.executors = executors;
    this.hosts = hosts;
  }

  @Override
  public Iterator<Tuple2<Integer, byte[]>> apply(
    Iterator<RatingBatch> ratings,
    Iterator<SolvedBlock> solved
  ) {
    List<SolvedBlock> read = new ArrayList<>();
    Supplier<List<byte[]>> factors = () -> {
      if (read.isEmpty()) read.add(solved.next());
      return read.get(0).factors;
    };
    int from = TaskContext.getPartitionId();
    if (executors.includeThis()) return Scala.scala(task.send(from, Scala.java(ratings), factors));
    return Scala.scala(
      factors
        .get()
        .stream()
        .flatMap(stream ->
          IntStream.range(0, hosts)
            .filter(to -> to != from)
            .mapToObj(to -> new Tuple2<>(from * hosts + to, stream))
        )
        .iterator()
    );
  }
}
