package io.github.factorflow.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
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
    JsonNode report = progress.report();
    List<Iteration> iterations = new ArrayList<>();
    for (JsonNode one : report.path("iterations")) {
      int iteration = one.path("iteration").asInt();
      double took = one.path("seconds").asDouble();
      iterations.add(new Iteration(iteration, took, measured(one, "loss"), measured(one, "trainRmse")));
    }
    return new FitSummary(
      parameters.algorithm(),
      parameters.rank(),
      hosts,
      progress.devices().value().stream().distinct().sorted().toList(),
      progress.kernels().value().stream().distinct().toList(),
      progress.ratings().value(),
      progress.sent().value(),
      progress.received().value(),
      report.path("resumedFrom").path("iteration").asInt(),
      seconds,
      iterations
    );
  }

  private static double measured(JsonNode iteration, String name) {
    return iteration.path(name).isNumber() ? iteration.get(name).asDouble() : Double.NaN;
  }

  /** The fields by their names, and NaN as null. */
  public String toJson() {
    ObjectNode json = new ObjectMapper().valueToTree(this);
    for (JsonNode iteration : json.path("iterations"))
      for (String name : List.of("loss", "trainRmse"))
        if (Double.isNaN(iteration.path(name).asDouble())) ((ObjectNode) iteration).putNull(name);
    return json.toString();
  }

  /** One line for a log. */
  @Override
  public String toString() {
    int count = iterations.size();
    double training = iterations.stream().mapToDouble(Iteration::seconds).sum();
    StringBuilder line = new StringBuilder(algorithm.toUpperCase(Locale.ROOT));
    line.append(text(" of rank %d | %,d ratings | %s", rank, ratings, String.join(", ", devices)));
    line.append(text(" | %d iterations, %.3f s each", count, training / Math.max(1, count)));
    double loss = count == 0 ? Double.NaN : iterations.get(count - 1).loss();
    double rmse = count == 0 ? Double.NaN : iterations.get(count - 1).trainRmse();
    if (!Double.isNaN(loss)) line.append(text(" | loss %.6g", loss));
    if (!Double.isNaN(rmse)) line.append(text(" | training RMSE %.4f", rmse));
    if (!kernels.isEmpty()) line.append(" | ").append(String.join("; ", kernels));
    line.append(text(" | %.1f MiB to workers, %.1f MiB back", mib(bytesToWorkers), mib(bytesFromWorkers)));
    return line + text(" | %.1f s in all", seconds);
  }

  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }

  private static double mib(long bytes) {
    return bytes / 1048576.0;
  }
}
