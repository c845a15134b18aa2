package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Executors;
import io.github.factorflow.spark.run.Progress;
import io.github.factorflow.spark.version.Scala;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The long-lived worker of one fit on one executor. It serves one task at a time. Its data are only a cache:
 * a task sends it the data that it lacks. It ends with its fit, when a task that uses it fails or is
 * cancelled, and after a minute without a task. A worker that solves blocks again after the fit ends after
 * some seconds without a task.
 */
final class RowWorker {

  /**
   * The property of a fit's own jobs that has its id. Later jobs, which solve lost blocks again, do not have
   * it.
   */
  static final String FIT = "factorflow.fit";
  private static final Logger log = LoggerFactory.getLogger(RowWorker.class);
  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final long IDLE_NANOS_AFTER_FIT = TimeUnit.SECONDS.toNanos(3);
  /** The workers of this JVM, an executor's, by fit. */
  private static final Map<String, RowWorker> workers = new ConcurrentHashMap<>();
  private final RowSession session;
  private final ReentrantLock turn = new ReentrantLock();
  private WorkerProcess process;
  private long sent = 0;
  private long received = 0;

  /** The last frame of a response, and the factors or equations sent before it. */
  record Answer(Frame frame, List<byte[]> factors) {
    String missing() {
      return frame.text("missing");
    }
  }

  private RowWorker(RowSession session) {
    this.session = session;
  }

  static RowWorker of(RowSession session) {
    return workers.computeIfAbsent(session.id(), id -> new RowWorker(session));
  }

  /**
   * Does a task's work with the worker, which is started if there is none. {@code progress} is the task's.
   */
  <T> T use(TaskContext task, Progress progress, Supplier<T> work) {
    takeTurn(task);
    sent = 0;
    received = 0;
    boolean done = false;
    try {
      start(task);
      T result = work.get();
      progress.exchanged(sent, received);
      done = true;
      return result;
    } finally {
      if (done) rest(task);
      else end();
      turn.unlock();
    }
  }

  private void takeTurn(TaskContext task) {
    try {
      while (!turn.tryLock(50, TimeUnit.MILLISECONDS)) task.killTaskIfInterrupted();
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new FactorFlowException(
        "FactorFlow's task was interrupted while it waited for its worker",
        interrupt
      );
    }
  }

  private void start(TaskContext task) {
    if (process != null && process.isAlive()) {
      process.watchedBy(task::isInterrupted);
      if (process.isAlive()) return;
    }
    process = session.placement().start(task, session.opening(), session.progress()::see);
  }

  private void rest(TaskContext task) {
    boolean fits = session.id().equals(task.getLocalProperty(FIT));
    long until = System.nanoTime() + (fits ? IDLE_NANOS : IDLE_NANOS_AFTER_FIT);
    process.watchedBy(() -> System.nanoTime() > until);
  }

  /** Ends the process, even during its work. */
  private void end() {
    if (process != null) process.close();
    process = null;
  }

  /** Sends a request, and waits for its answer. */
  Answer ask(ObjectNode request, byte[] payload) {
    sent += payload.length;
    List<byte[]> factors = new ArrayList<>();
    Frame answer = process.ask(request, payload, part -> {
      received += part.payload().length;
      if (part.type().equals("factors") || part.type().equals("equations")) factors.add(part.payload());
      else session.progress().see(part);
    });
    received += answer.payload().length;
    return new Answer(answer, factors);
  }

  /** Ends the worker of a fit that is over on this executor. */
  private static void end(String id) {
    RowWorker worker = workers.remove(id);
    if (worker == null) return;
    worker.turn.lock();
    try {
      worker.end();
    } finally {
      worker.turn.unlock();
    }
  }

  /**
   * Ends the workers of a fit on all executors, with a job of one task for each, which runs while the caller
   * continues. A worker that the job does not reach ends by itself.
   */
  static void endAll(SparkContext context, String id) {
    end(id);
    if (context.isLocal()) return;
    Thread thread = new Thread(() -> endOnExecutors(context, id), "factorflow-release");
    thread.setDaemon(true);
    thread.start();
  }

  private static void endOnExecutors(SparkContext context, String id) {
    // this thread has the caller's job group and tags: its cancel must not reach this job
    context.clearJobGroup();
    context.clearJobTags();
    context.setJobDescription("FactorFlow ALS: ending workers");
    List<String> places = Executors.places(context, Set.of());
    if (places.isEmpty()) return;
    try {
      var tasks = JavaSparkContext.fromSparkContext(context).parallelize(places, places.size()).rdd();
      var placed = new Executors(places).prefer(tasks, Scala.<String>tag(String.class));
      placed.toJavaRDD().foreach(place -> end(id));
    } catch (Exception failure) {
      // Not only RuntimeException: Scala throws checked exceptions without declaring them, for example when an
      // application that stops after its fit cancels this job.
      log.info("FactorFlow's workers end by themselves: {}", failure.getMessage());
    }
  }
}
