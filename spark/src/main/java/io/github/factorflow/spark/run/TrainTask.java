package io.github.factorflow.spark.run;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Parameters;
import io.github.factorflow.spark.data.FactorBlock;
import io.github.factorflow.spark.data.RatingBatch;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * The task that trains. Its input are batches of all ratings; its output are blocks of both sides' factors,
 * each with its partition.
 *
 * @param checkpoints null for none
 */
record TrainTask(
  Placement placement,
  Parameters parameters,
  Progress progress,
  Checkpoints checkpoints
) implements Function1<Iterator<RatingBatch>, Iterator<Tuple2<Integer, FactorBlock>>>, Serializable {
  private static final Logger log = LoggerFactory.getLogger(TrainTask.class);

  @Override
  public Iterator<Tuple2<Integer, FactorBlock>> apply(Iterator<RatingBatch> ratings) {
    if (!ratings.hasNext()) return Scala.scala(Collections.emptyIterator());
    TaskContext task = TaskContext.get();
    Checkpoints.Local local = checkpoints == null ? null : checkpoints.open(Placement.folderOfFiles());
    if (local != null) task.addTaskCompletionListener((TaskCompletionListener) done -> local.remove());
    WorkerProcess worker = placement.startInTurn(task, opening(local), frame -> {
      progress.see(frame);
      // a checkpoint is complete at the end of the iteration after it
      if (local != null && frame.type().equals("iteration")) local.copy();
    });
    feed(worker, ratings);
    return Scala.scala(new TrainedFactors(worker, parameters, progress));
  }

  private ObjectNode opening(Checkpoints.Local local) {
    ObjectNode opening = JsonNodeFactory.instance.objectNode();
    opening.put("command", "train").put("algorithm", parameters.algorithm());
    opening.set("params", parameters.toJson());
    if (parameters.startsAsSpark()) opening
      .putObject("sparkStart")
      .put("seed", String.valueOf(parameters.seed()))
      .put("userBlocks", parameters.userBlocks());
    if (local != null) local.name(opening);
    return opening.putNull("rows");
  }

  private void feed(WorkerProcess worker, Iterator<RatingBatch> ratings) {
    long start = System.nanoTime();
    long rows = 0;
    long bytes = 0;
    try {
      RatingBatch.start(worker.in());
      while (ratings.hasNext()) {
        RatingBatch batch = ratings.next();
        worker.in().write(batch.message);
        rows += batch.rows;
        bytes += batch.message.length;
      }
      RatingBatch.end(worker.in());
      Frame.writeLine(worker.in(), JsonNodeFactory.instance.objectNode().put("rows", rows));
    } catch (IOException broken) {
      // The worker has ended. Its remaining frames, which are read next, contain the reason.
      log.info("FactorFlow took {} ratings and no more: {}", rows, broken.getMessage());
    }
    long millis = (System.nanoTime() - start) / 1_000_000;
    progress.ratings().add(rows);
    progress.exchanged(bytes, 0);
    progress.handOver().add(millis);
    log.info("FactorFlow: {} ratings handed over in {} ms", rows, millis);
  }
}
