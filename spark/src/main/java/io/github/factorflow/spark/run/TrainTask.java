package io.github.factorflow.spark.run;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.data.RatingStream;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.worker.DeviceTurns;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.FrameWriter;
import io.github.factorflow.spark.worker.Launch;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * The task that trains. Its input are batches of all ratings; its output are blocks of both sides' factors,
 * each with its partition.
 */
final class TrainTask
  extends AbstractFunction1<Iterator<RatingBatch>, Iterator<Tuple2<Integer, FactorBlock>>>
  implements Serializable
{

  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(TrainTask.class);
  private final Launch launch;
  private final Placement placement;
  private final Parameters parameters;
  private final Progress progress;
  private final Checkpoints checkpoints;

  /** @param checkpoints null for none */
  TrainTask(
    Launch launch,
    Placement placement,
    Parameters parameters,
    Progress progress,
    Checkpoints checkpoints
  ) {
    this.checkpoints = checkpoints;
    this.launch = launch;
    this.placement = placement;
    this.parameters = parameters;
    this.progress = progress;
  }

  @Override
  public Iterator<Tuple2<Integer, FactorBlock>> apply(Iterator<RatingBatch> ratings) {
    if (!ratings.hasNext()) return Scala.scala(Collections.emptyIterator());
    TaskContext task = TaskContext.get();
    Runnable leave = DeviceTurns.take(placement.device(task), task::isInterrupted);
    task.addTaskCompletionListener((TaskCompletionListener) done -> leave.run());
    LocalCheckpoints local =
      checkpoints == null ? null : LocalCheckpoints.open(checkpoints, Placement.folderOfFiles());
    if (local != null) task.addTaskCompletionListener((TaskCompletionListener) done -> local.close());
    WorkerProcess worker = WorkerProcess.start(
      launch,
      placement.flags(task),
      request(local),
      () -> task.isInterrupted() || task.isCompleted(),
      frame -> see(frame, local)
    );
    task.addTaskCompletionListener((TaskCompletionListener) done -> worker.close());
    feed(worker, ratings);
    return Scala.scala(new TrainedFactors(worker, parameters, placement, progress));
  }

  private void see(Frame frame, LocalCheckpoints local) {
    progress.see(frame);
    // a checkpoint is complete at the end of the iteration after it
    if (local != null && frame.type().equals("iteration")) local.copy();
  }

  private ObjectNode request(LocalCheckpoints local) {
    ObjectNode request = JsonNodeFactory.instance.objectNode();
    request.put("protocol", Launch.PROTOCOL).put("version", Launch.VERSION).put("command", "train");
    request.put("algorithm", parameters.algorithm());
    request.set("params", parameters.toJson());
    if (parameters.startsAsSpark()) request
      .putObject("sparkStart")
      .put("seed", String.valueOf(parameters.seed()))
      .put("userBlocks", parameters.userBlocks());
    if (local != null) checkpoints.name(request, local);
    return request.putNull("rows");
  }

  private void feed(WorkerProcess worker, Iterator<RatingBatch> ratings) {
    long start = System.nanoTime();
    long rows = 0;
    long bytes = 0;
    try {
      RatingStream.start(worker.in());
      while (ratings.hasNext()) {
        RatingBatch batch = ratings.next();
        worker.in().write(batch.message);
        rows += batch.rows;
        bytes += batch.message.length;
      }
      RatingStream.end(worker.in());
      new FrameWriter(worker.in()).line(JsonNodeFactory.instance.objectNode().put("rows", rows));
    } catch (IOException broken) {
      // The worker has ended. Its remaining frames, which are read next, contain the reason.
      log.info("FactorFlow took {} ratings and no more: {}", rows, broken.getMessage());
    }
    long millis = (System.nanoTime() - start) / 1_000_000;
    progress.ratings(rows);
    progress.exchanged(bytes, 0);
    progress.handedOver(millis);
    log.info("FactorFlow: {} ratings handed over in {} ms", rows, millis);
  }
}
