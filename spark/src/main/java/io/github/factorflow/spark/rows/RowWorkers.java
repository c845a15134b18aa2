package io.github.factorflow.spark.rows;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The workers of this JVM, an executor's, by fit. */
final class RowWorkers {

  private static final Map<String, RowWorker> workers = new ConcurrentHashMap<>();

  private RowWorkers() {}

  static RowWorker of(RowSession session) {
    return workers.computeIfAbsent(session.id(), id -> new RowWorker(session));
  }

  static void end(String id) {
    RowWorker worker = workers.remove(id);
    if (worker != null) worker.finish();
  }
}
