package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;

/** Streams of factors for a worker that lacks them, see {@link RowTask#run}. */
record GivenFactors(
  Supplier<Iterator<byte[]>> fixed,
  Supplier<List<byte[]>> local,
  Supplier<List<byte[]>> previous
) {
  /** Gives a worker the fixed side. {@code take}: the request to use the rows of its own block. */
  void fix(RowWorker worker, ObjectNode request, ObjectNode take) {
    fixed.get().forEachRemaining(stream -> worker.ask(request, stream));
    if (worker.ask(take, new byte[0]).missing().isEmpty()) return;
    for (byte[] stream : local.get()) worker.ask(request, stream);
  }
}
