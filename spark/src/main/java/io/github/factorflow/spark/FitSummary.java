package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Progress;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The outcome of a fit, and its cost.
 *
 * @param algorithm als or sgd
 * @param rank features of a row, without the two of biases
 * @param hosts workers that trained together
 * @param devices each with its host, such as "cpu on node1"
 * @param kernels of the plan; on several hosts those that solved their blocks
 * @param bytesToWorkers ratings and factors that were sent to workers
 * @param bytesFromWorkers factors that they sent back
 * @param resumedFrom the iteration of the checkpoint from which a lost training went on; 0 if there was none
 * @param seconds from the first job to the factors
 */
public record FitSummary(
  String algorithm,
  int rank,
  int hosts,
  List<String> devices,
  List<String> kernels,
  long ratings,
  long bytesToWorkers,
  long bytesFromWorkers,
  int resumedFrom,
  double seconds,
  List<Iteration> iterations
) {
  /** Loss and training RMSE are NaN where they were not measured (docs/spark.md). */
  public record Iteration(int iteration, double seconds, double loss, double trainRmse) {}

  static FitSummary of(Parameters parameters, int hosts, Progress progress, double seconds) {
    return new FitSummary(
      parameters.algorithm(),
      parameters.rank(),
      hosts,
      progress.devices(),
      progress.kernels(),
      progress.ratings(),
      progress.bytesToWorkers(),
      progress.bytesFromWorkers(),
      progress.report().path("resumedFrom").path("iteration").asInt(),
      seconds,
      iterations(progress)
    );
  }

  private static List<Iteration> iterations(Progress progress) {
    List<Iteration> all = new ArrayList<>();
    for (Progress.Iteration one : progress.measured())
      all.add(new Iteration(all.size() + 1, one.seconds(), one.loss(), one.trainRmse()));
    JsonNode report = progress.report();
    for (JsonNode one : report.path("iterations"))
      all.add(
        new Iteration(
          one.path("iteration").asInt(),
          one.path("seconds").asDouble(),
          measured(one, "loss"),
          measured(one, "trainRmse")
        )
      );
    return all;
  }

  private static double measured(JsonNode iteration, String name) {
    return iteration.path(name).isNumber() ? iteration.get(name).asDouble() : Double.NaN;
  }

  /** The fields by their names, and NaN as null. */
  public String toJson() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("algorithm", algorithm).put("rank", rank).put("hosts", hosts);
    devices.forEach(json.putArray("devices")::add);
    kernels.forEach(json.putArray("kernels")::add);
    json
      .put("ratings", ratings)
      .put("bytesToWorkers", bytesToWorkers)
      .put("bytesFromWorkers", bytesFromWorkers)
      .put("resumedFrom", resumedFrom)
      .put("seconds", seconds);
    ArrayNode list = json.putArray("iterations");
    for (Iteration one : iterations) {
      ObjectNode entry = list.addObject().put("iteration", one.iteration()).put("seconds", one.seconds());
      entry.put("loss", orNull(one.loss())).put("trainRmse", orNull(one.trainRmse()));
    }
    return json.toString();
  }

  private static Double orNull(double value) {
    return Double.isNaN(value) ? null : value;
  }

  /** One line for a log. */
  @Override
  public String toString() {
    double training = iterations.stream().mapToDouble(Iteration::seconds).sum();
    Iteration last = iterations.isEmpty()
      ? new Iteration(0, 0, Double.NaN, Double.NaN)
      : iterations.get(iterations.size() - 1);
    String loss = Double.isNaN(last.loss()) ? "" : text(" | loss %.6g", last.loss());
    String rmse = Double.isNaN(last.trainRmse()) ? "" : text(" | training RMSE %.4f", last.trainRmse());
    String by = kernels.isEmpty() ? "" : " | " + String.join("; ", kernels);
    return (
      text(
        "%s of rank %d | %,d ratings | %s | %d iterations, %.3f s each",
        algorithm.toUpperCase(Locale.ROOT),
        rank,
        ratings,
        String.join(", ", devices),
        iterations.size(),
        training / Math.max(1, iterations.size())
      ) +
      loss +
      rmse +
      by +
      text(
        " | %.1f MiB to workers, %.1f MiB back | %.1f s in all",
        mib(bytesToWorkers),
        mib(bytesFromWorkers),
        seconds
      )
    );
  }

  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  private static double mib(long bytes) {
    return bytes / 1048576.0;
  }
}
