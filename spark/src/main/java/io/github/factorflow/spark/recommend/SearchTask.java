package io.github.factorflow.spark.recommend;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.util.ArrayDeque;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Queue;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction2;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The task that searches: its inputs are streams of all candidates, and of the rows whose lists it returns.
 *
 * @param n entries of a list
 */
record SearchTask(
  Placement placement,
  int rank,
  int n
) implements FlatMapFunction2<Iterator<byte[]>, Iterator<byte[]>, Lists> {
  private static final Logger log = LoggerFactory.getLogger(SearchTask.class);
  private static final long GROUP_BYTES = 64L << 20;
  private static final byte[] nothing = new byte[0];

  @Override
  public Iterator<Lists> call(Iterator<byte[]> candidates, Iterator<byte[]> rows) {
    if (!rows.hasNext() || !candidates.hasNext()) return Collections.emptyIterator();
    WorkerProcess worker = placement.startInTurn(TaskContext.get(), opening(), frame ->
      log.info("FactorFlow: {}", frame.header())
    );
    return new Search(worker, candidates, rows);
  }

  static ObjectNode opening() {
    return JsonNodeFactory.instance.objectNode().put("command", "model");
  }

  /**
   * The lists that a worker returns. It gets all candidates first, and then the rows in groups, so that it
   * holds one group at a time.
   */
  private final class Search implements Iterator<Lists> {

    private final Queue<Lists> ready = new ArrayDeque<>();
    private final WorkerProcess worker;
    private final Iterator<byte[]> candidates;
    private final Iterator<byte[]> rows;
    private boolean ended = false;

    Search(WorkerProcess worker, Iterator<byte[]> candidates, Iterator<byte[]> rows) {
      this.worker = worker;
      this.candidates = candidates;
      this.rows = rows;
    }

    @Override
    public boolean hasNext() {
      while (ready.isEmpty() && !ended) {
        if (rows.hasNext()) searchGroup();
        else end();
      }
      return !ready.isEmpty();
    }

    @Override
    public Lists next() {
      if (!hasNext()) throw new NoSuchElementException();
      return ready.remove();
    }

    private void searchGroup() {
      while (candidates.hasNext()) ask(factors("items"), candidates.next());
      for (long bytes = 0; bytes < GROUP_BYTES && rows.hasNext(); ) {
        byte[] stream = rows.next();
        bytes += stream.length;
        ask(factors("users"), stream);
      }
      ask(model(), nothing);
      ask(Frame.request("recommend").put("users", "all").put("n", n), nothing);
    }

    private ObjectNode factors(String side) {
      return Frame.request("factors").put("side", side).put("features", rank);
    }

    /** The request for a model of these rows and all candidates, with the names that Lists reads. */
    private ObjectNode model() {
      ObjectNode request = Frame.request("model").put("features", rank);
      ObjectNode columns = request.putObject("columns");
      for (String name : List.of("user", "item", "rating", "prediction")) columns.put(name, name);
      request.putObject("metadata");
      return request;
    }

    private void ask(ObjectNode request, byte[] payload) {
      worker.ask(request, payload, part -> {
        if (part.type().equals("lists")) ready.addAll(Lists.decode(part.payload()));
      });
    }

    private void end() {
      ended = true;
      worker.send(Frame.request("end"), nothing);
      for (Frame frame = worker.take(); frame != null; frame = worker.take()) continue;
      worker.finish();
    }
  }
}
