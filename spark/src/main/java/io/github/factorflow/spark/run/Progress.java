package io.github.factorflow.spark.run;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.HostName;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports of tasks to the driver: named counters, which Spark's UI shows, and the reasons why workers
 * refused the work.
 */
public final class Progress implements Serializable {

  private static final long serialVersionUID = 1;
  private static final Logger log = LoggerFactory.getLogger(Progress.class);
  private final LongAccumulator ratings = new LongAccumulator();
  private final LongAccumulator iterations = new LongAccumulator();
  private final LongAccumulator handOver = new LongAccumulator();
  private final LongAccumulator training = new LongAccumulator();
  /**
   * Refusals are results, not failures of a task: Spark would run a failed task again, with the same
   * outcome.
   */
  private final CollectionAccumulator<String> refusals = new CollectionAccumulator<>();
  private final LongAccumulator sent = new LongAccumulator();
  private final LongAccumulator received = new LongAccumulator();
  private final CollectionAccumulator<String> devices = new CollectionAccumulator<>();
  private final CollectionAccumulator<String> kernels = new CollectionAccumulator<>();
  /** Reports of trainings as JSON: the last one is of the attempt that succeeded. */
  private final CollectionAccumulator<String> reports = new CollectionAccumulator<>();
  /** Iterations of several hosts, which the driver measures. */
  private final transient List<Iteration> measured = new ArrayList<>();

  /** An iteration of a fit. Values that were not measured are NaN. */
  public record Iteration(double seconds, double loss, double trainRmse) {}

  private Progress() {}

  public static Progress register(SparkContext context) {
    Progress progress = new Progress();
    context.register(progress.ratings, "FactorFlow: ratings");
    context.register(progress.iterations, "FactorFlow: iterations");
    context.register(progress.handOver, "FactorFlow: ms of handing over");
    context.register(progress.training, "FactorFlow: ms of training");
    context.register(progress.sent, "FactorFlow: bytes to workers");
    context.register(progress.received, "FactorFlow: bytes from workers");
    for (CollectionAccumulator<String> texts : List.of(
      progress.refusals,
      progress.devices,
      progress.kernels,
      progress.reports
    ))
      context.register(texts);
    return progress;
  }

  /** Takes a worker's frames that need no answer. */
  public void see(Frame frame) {
    switch (frame.type()) {
      case "iteration" -> iterations.add(1);
      case "device" -> devices.add(
        (frame.text("adapter").isEmpty() ? frame.text("kind") : frame.text("adapter")) +
          " on " +
          HostName.get()
      );
      case "plan" -> frame
        .header()
        .path("plan")
        .path("round")
        .forEach(stage -> kernels.add(stage.path("kernel").asText()));
      case "report" -> reports.add(frame.header().toString());
      default -> {
        // for the log alone
      }
    }
    if (frame.type().equals("warning")) log.warn("FactorFlow: {}", frame.text("text"));
    else log.info("FactorFlow: {}", frame.header());
  }

  public void ratings(long rows) {
    ratings.add(rows);
  }

  void handedOver(long millis) {
    handOver.add(millis);
  }

  void trained(long millis) {
    training.add(millis);
  }

  void refused(String reason) {
    refusals.add(reason);
  }

  List<String> refusals() {
    return refusals.value();
  }

  /** Counts bytes of ratings and factors to and from a worker. */
  public void exchanged(long toWorker, long fromWorker) {
    sent.add(toWorker);
    received.add(fromWorker);
  }

  /** On the driver: an iteration has ended. */
  public void iterated(double seconds, double loss, double trainRmse) {
    measured.add(new Iteration(seconds, loss, trainRmse));
  }

  public List<Iteration> measured() {
    return measured;
  }

  /** On several hosts, whose blocks have no common plan: the kernel that solved a block. */
  public void solvedBy(String kernel) {
    kernels.add(kernel);
  }

  public List<String> devices() {
    return devices.value().stream().distinct().sorted().toList();
  }

  public List<String> kernels() {
    return kernels.value().stream().distinct().toList();
  }

  public long ratings() {
    return ratings.value();
  }

  public long bytesToWorkers() {
    return sent.value();
  }

  public long bytesFromWorkers() {
    return received.value();
  }

  /** The report of the training; without fields on several hosts. */
  public JsonNode report() {
    List<String> all = reports.value();
    try {
      return new ObjectMapper().readTree(all.isEmpty() ? "{}" : all.get(all.size() - 1));
    } catch (JsonProcessingException failure) {
      throw new IllegalStateException(failure);
    }
  }
}
