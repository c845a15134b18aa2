package io.github.factorflow.spark.recommend;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Placement;
import io.github.factorflow.spark.run.Refusal;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.FrameWriter;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Queue;

/**
 * The lists that a worker returns. It gets all candidates first, and then the rows in groups, so that it
 * holds one group at a time.
 */
final class Search implements Iterator<Lists> {

  private static final long GROUP_BYTES = 64L << 20;
  private final Queue<Lists> ready = new ArrayDeque<>();
  private final WorkerProcess worker;
  private final Placement placement;
  private final int rank;
  private final int n;
  private final Iterator<byte[]> candidates;
  private final Iterator<byte[]> rows;
  private long requests = 0;
  private boolean ended = false;

  Search(
    WorkerProcess worker,
    Placement placement,
    int rank,
    int n,
    Iterator<byte[]> candidates,
    Iterator<byte[]> rows
  ) {
    this.worker = worker;
    this.placement = placement;
    this.rank = rank;
    this.n = n;
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
    ask(model(), new byte[0]);
    ask(node("recommend").put("users", "all").put("n", n), new byte[0]);
  }

  private ObjectNode factors(String side) {
    return node("factors").put("side", side).put("features", rank);
  }

  /** The request for a model of these rows and all candidates, with the names that Lists reads. */
  private ObjectNode model() {
    ObjectNode request = node("model").put("features", rank);
    ObjectNode columns = request.putObject("columns");
    for (String name : List.of("user", "item", "rating", "prediction")) columns.put(name, name);
    request.putObject("metadata");
    return request;
  }

  private void end() {
    ended = true;
    send(node("end"), new byte[0]);
    for (Frame frame = worker.take(); frame != null; frame = worker.take()) {
      if (frame.type().equals("error")) throw Refusal.failure(frame, placement);
    }
    worker.finish();
  }

  /** Sends a request, and waits for its answer. */
  private void ask(ObjectNode request, byte[] payload) {
    send(request, payload);
    for (Frame frame = worker.take(); frame != null; frame = worker.take()) {
      switch (frame.type()) {
        case "lists" -> ready.addAll(decoded(frame));
        case "answer" -> {
          JsonNode error = frame.header().path("error");
          if (error.isObject()) throw Refusal.failure(new Frame(error, frame.payload()), placement);
          return;
        }
        case "error" -> throw Refusal.failure(frame, placement);
        default -> {
          // nothing that a search needs
        }
      }
    }
    throw worker.gone("ended before it had answered " + request.path("type").asText(), "");
  }

  private void send(ObjectNode request, byte[] payload) {
    try {
      new FrameWriter(worker.in()).frame(request.put("id", ++requests), payload);
      worker.in().flush();
    } catch (IOException broken) {
      // The worker has ended. Its remaining frames, which are read next, contain the reason.
    }
  }

  private static List<Lists> decoded(Frame frame) {
    try {
      return Lists.decode(frame.payload());
    } catch (IOException failure) {
      throw new FactorFlowException(
        "FactorFlow's worker gave lists that cannot be read: " + failure.getMessage(),
        failure
      );
    }
  }

  private static ObjectNode node(String type) {
    return JsonNodeFactory.instance.objectNode().put("type", type);
  }
}
