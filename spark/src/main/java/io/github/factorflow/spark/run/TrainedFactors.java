package io.github.factorflow.spark.run;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.FactorScatter;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.NoSuchElementException;
import scala.Tuple2;

/**
 * The factors that a worker sends, in order of arrival, as blocks with their partitions: first the users',
 * then the items'.
 */
final class TrainedFactors implements Iterator<Tuple2<Integer, FactorBlock>> {

  private final ArrayDeque<Tuple2<Integer, FactorBlock>> ready = new ArrayDeque<>();
  private final WorkerProcess worker;
  private final int rank;
  private final Progress progress;
  private final FactorScatter users;
  private final FactorScatter items;
  private final long start = System.nanoTime();
  private boolean begun = false;
  private boolean ended = false;

  TrainedFactors(WorkerProcess worker, Parameters parameters, Progress progress) {
    this.worker = worker;
    this.progress = progress;
    rank = parameters.features();
    users = new FactorScatter(rank, 0, parameters.userBlocks(), ready);
    items = new FactorScatter(rank, parameters.userBlocks(), parameters.itemBlocks(), ready);
  }

  @Override
  public boolean hasNext() {
    try {
      while (ready.isEmpty() && !ended) read();
    } catch (FactorFlowException.Refused refused) {
      if (begun) throw refused;
      progress.refusals().add(refused.getMessage());
      ended = true;
      worker.close();
    }
    return !ready.isEmpty();
  }

  @Override
  public Tuple2<Integer, FactorBlock> next() {
    if (!hasNext()) throw new NoSuchElementException();
    return ready.remove();
  }

  private void read() {
    Frame frame = worker.take();
    if (frame == null) throw worker.gone("ended before its factors were whole", "");
    switch (frame.type()) {
      case "factors" -> {
        if (!begun) progress.training().add((System.nanoTime() - start) / 1_000_000);
        begun = true;
        progress.exchanged(0, frame.payload().length);
        FactorScatter side = frame.text("side").equals("users") ? users : items;
        FactorBlock.decode(frame.payload(), rank).forEach(side::add);
      }
      case "done" -> {
        users.end();
        items.end();
        ended = true;
        worker.finish();
      }
      default -> progress.see(frame);
    }
  }
}
