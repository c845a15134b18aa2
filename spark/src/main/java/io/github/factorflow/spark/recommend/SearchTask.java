package io.github.factorflow.spark.recommend;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.worker.DeviceTurns;
import io.github.factorflow.spark.worker.Launch;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction2;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The task that searches: its inputs are streams of all candidates, and of the rows whose lists it returns.
 */
final class SearchTask implements FlatMapFunction2<Iterator<byte[]>, Iterator<byte[]>, Lists> {

  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(SearchTask.class);
  private final Launch launch;
  private final Placement placement;
  private final int rank;
  private final int n;

  SearchTask(Launch launch, Placement placement, int rank, int n) {
    this.launch = launch;
    this.placement = placement;
    this.rank = rank;
    this.n = n;
  }

  @Override
  public Iterator<Lists> call(Iterator<byte[]> candidates, Iterator<byte[]> rows) {
    if (!rows.hasNext() || !candidates.hasNext()) return Collections.emptyIterator();
    TaskContext task = TaskContext.get();
    Runnable leave = DeviceTurns.take(placement.device(task), task::isInterrupted);
    task.addTaskCompletionListener((TaskCompletionListener) done -> leave.run());
    WorkerProcess worker = start(task);
    task.addTaskCompletionListener((TaskCompletionListener) done -> worker.close());
    return new Search(worker, placement, rank, n, candidates, rows);
  }

  private WorkerProcess start(TaskContext task) {
    return WorkerProcess.start(
      launch,
      placement.flags(task),
      opening(),
      () -> task.isInterrupted() || task.isCompleted(),
      frame -> log.info("FactorFlow: {}", frame.header())
    );
  }

  static ObjectNode opening() {
    return JsonNodeFactory.instance
      .objectNode()
      .put("protocol", Launch.PROTOCOL)
      .put("version", Launch.VERSION)
      .put("command", "model");
  }
}
