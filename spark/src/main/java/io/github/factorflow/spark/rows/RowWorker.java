package io.github.factorflow.spark.rows;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.run.Progress;
import io.github.factorflow.spark.run.Refusal;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.FrameWriter;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;

/**
 * The long-lived worker of one fit on one executor. It serves one task at a time. Its data are only a cache:
 * a task sends it the data that it lacks. It ends with its fit, when a task that uses it fails or is
 * cancelled, and after a minute without a task. A worker that solves blocks again after the fit ends after some
 * seconds without a task.
 */
final class RowWorker {

  private static final long IDLE_NANOS = TimeUnit.SECONDS.toNanos(60);
  private static final long IDLE_NANOS_AFTER_FIT = TimeUnit.SECONDS.toNanos(3);
  private final RowSession session;
  private final ReentrantLock turn = new ReentrantLock();
  private WorkerProcess process;
  private long requests = 0;
  private long sent = 0;
  private long received = 0;

  /** The last frame of a response, and the factors or equations sent before it. */
  record Answer(Frame frame, List<byte[]> factors) {
    String missing() {
      return frame.text("missing");
    }
  }

  RowWorker(RowSession session) {
    this.session = session;
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
      process.watchedBy(() -> task.isInterrupted());
      if (process.isAlive()) return;
    }
    process = WorkerProcess.start(
      session.launch(),
      session.placement().flags(task),
      session.opening(),
      () -> task.isInterrupted(),
      session.progress()::see
    );
  }

  private void rest(TaskContext task) {
    boolean fits = RunningFit.hasTask(session.id(), task);
    long until = System.nanoTime() + (fits ? IDLE_NANOS : IDLE_NANOS_AFTER_FIT);
    process.watchedBy(() -> System.nanoTime() > until);
  }

  /** Ends the process, even during its work. */
  void end() {
    if (process != null) process.close();
    process = null;
  }

  /** Ends the worker of a fit that is over. */
  void finish() {
    turn.lock();
    try {
      end();
    } finally {
      turn.unlock();
    }
  }

  /** Sends a request, and waits for its answer. */
  Answer ask(ObjectNode request, byte[] payload) {
    sent += payload.length;
    try {
      new FrameWriter(process.in()).frame(request.put("id", ++requests), payload);
      process.in().flush();
    } catch (IOException broken) {
      // The worker has ended. Its remaining frames, which are read next, contain the reason.
    }
    List<byte[]> factors = new ArrayList<>();
    for (Frame frame = process.take(); frame != null; frame = process.take()) {
      received += frame.payload().length;
      switch (frame.type()) {
        case "factors", "equations" -> factors.add(frame.payload());
        case "answer" -> {
          return new Answer(frame, factors);
        }
        case "error" -> throw Refusal.failure(frame, session.placement());
        default -> session.progress().see(frame);
      }
    }
    throw process.gone("ended before it had answered " + request.path("type").asText(), "");
  }
}
