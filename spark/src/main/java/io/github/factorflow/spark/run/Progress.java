package io.github.factorflow.spark.run;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports of tasks to the driver: named counters, which Spark's UI shows, and texts.
 *
 * @param sent bytes of ratings and factors to workers; {@code received}: from them
 * @param refusals reasons why workers refused the work. They are results, not failures of a task: Spark would
 *     run a failed task again, with the same outcome
 * @param kernels of the plan; on several hosts, whose blocks have no common plan, those that solved a block
 * @param reports of trainings as JSON: the last one is of the attempt that succeeded
 */
public record Progress(
  LongAccumulator ratings,
  LongAccumulator iterations,
  LongAccumulator handOver,
  LongAccumulator training,
  LongAccumulator sent,
  LongAccumulator received,
  CollectionAccumulator<String> refusals,
  CollectionAccumulator<String> devices,
  CollectionAccumulator<String> kernels,
  CollectionAccumulator<String> reports
) implements Serializable {
  private static final Logger log = LoggerFactory.getLogger(Progress.class);

  public static Progress register(SparkContext context) {
    return new Progress(
      context.longAccumulator("FactorFlow: ratings"),
      context.longAccumulator("FactorFlow: iterations"),
      context.longAccumulator("FactorFlow: ms of handing over"),
      context.longAccumulator("FactorFlow: ms of training"),
      context.longAccumulator("FactorFlow: bytes to workers"),
      context.longAccumulator("FactorFlow: bytes from workers"),
      context.collectionAccumulator(),
      context.collectionAccumulator(),
      context.collectionAccumulator(),
      context.collectionAccumulator()
    );
  }

  /** Takes a worker's frames that need no answer. */
  public void see(Frame frame) {
    String adapter = frame.text("adapter");
    JsonNode stages = frame.header().path("plan").path("round");
    switch (frame.type()) {
      case "iteration" -> iterations.add(1);
      case "device" -> devices.add(
        (adapter.isEmpty() ? frame.text("kind") : adapter) + " on " + FactorFlowException.hostName()
      );
      case "plan" -> stages.forEach(stage -> kernels.add(stage.path("kernel").asText()));
      case "report" -> reports.add(frame.header().toString());
      default -> {
        // for the log alone
      }
    }
    if (frame.type().equals("warning")) log.warn("FactorFlow: {}", frame.text("text"));
    else log.info("FactorFlow: {}", frame.header());
  }

  /** Counts bytes of ratings and factors to and from a worker. */
  public void exchanged(long toWorker, long fromWorker) {
    sent.add(toWorker);
    received.add(fromWorker);
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
