package io.github.factorflow.spark.run;

import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.FactorCodec;
import io.github.factorflow.spark.data.FactorScatter;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.IOException;
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
  private final Parameters parameters;
  private final Placement placement;
  private final Progress progress;
  private final FactorScatter users;
  private final FactorScatter items;
  private final long start = System.nanoTime();
  private boolean begun = false;
  private boolean ended = false;

  TrainedFactors(WorkerProcess worker, Parameters parameters, Placement placement, Progress progress) {
    this.worker = worker;
    this.parameters = parameters;
    this.placement = placement;
    this.progress = progress;
    users = new FactorScatter(parameters.features(), 0, parameters.userBlocks(), ready);
    items = new FactorScatter(parameters.features(), parameters.userBlocks(), parameters.itemBlocks(), ready);
  }

  @Override
  public boolean hasNext() {
    while (ready.isEmpty() && !ended) read();
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
      case "factors" -> add(frame);
      case "error" -> refuse(frame);
      case "done" -> {
        users.end();
        items.end();
        ended = true;
        worker.finish();
      }
      default -> progress.see(frame);
    }
  }

  private void add(Frame frame) {
    if (!begun) progress.trained((System.nanoTime() - start) / 1_000_000);
    begun = true;
    progress.exchanged(0, frame.payload().length);
    FactorBlock block;
    try {
      block = FactorCodec.decode(frame.payload(), parameters.features());
    } catch (IOException failure) {
      throw new FactorFlowException(
        "FactorFlow's worker gave factors that cannot be read: " + failure.getMessage(),
        failure
      );
    }
    (frame.text("side").equals("users") ? users : items).add(block);
  }

  private void refuse(Frame frame) {
    RuntimeException failure = Refusal.failure(frame, placement);
    if (begun || !(failure instanceof Refusal.Refused)) throw failure;
    progress.refused(failure.getMessage());
    ended = true;
    worker.close();
  }
}
