package io.github.factorflow.spark.worker;

import static io.github.factorflow.spark.worker.FactorFlowException.INSTALL;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A running {@code factorflow worker}. One thread reads its frames and one its standard error. A third
 * checks whether the caller has cancelled, and then ends the process: SIGTERM, a pause, SIGKILL. It also ends
 * a process that gives no sign of life, such as one that was stopped. If this JVM dies, the process reads the
 * end of its standard input and ends by itself.
 */
public final class WorkerProcess implements AutoCloseable {

  private static final Logger log = LoggerFactory.getLogger(WorkerProcess.class);
  private static final long GRACE_MILLIS = 500;
  private static final long POLL_MILLIS = 50;
  private static final long GREETING_MILLIS = 60_000;
  /** Running processes. When this JVM begins to exit, they are ended at once, before other shutdown work. */
  private static final Set<Process> running = ConcurrentHashMap.newKeySet();

  static {
    Runnable end = () -> running.forEach(Process::destroyForcibly);
    Runtime.getRuntime().addShutdownHook(new Thread(end, "factorflow-exit"));
  }

  private final Launch launch;
  private final String place;
  private final Process process;
  private final OutputStream in;
  private final Tail tail;
  /** Frames that are read ahead; when it is full, the worker waits until one is taken. */
  private final BlockingQueue<Object> frames = new ArrayBlockingQueue<>(8);
  private final Consumer<Frame> progress;
  private final Object end = new Object();
  private volatile boolean greeted = false;
  private volatile boolean killed = false;
  private volatile boolean hung = false;
  private volatile boolean closed = false;
  private volatile BooleanSupplier cancelled;
  private long requests = 0;

  private WorkerProcess(Launch launch, List<String> command, Process process, BooleanSupplier cancelled,
      Consumer<Frame> progress) {
    this.launch = launch;
    place = "FactorFlow's worker on " + FactorFlowException.hostName() + " (" + String.join(" ", command) + ")";
    this.process = process;
    running.add(process);
    process.onExit().thenAccept(running::remove);
    this.cancelled = cancelled;
    this.progress = progress;
    in = new BufferedOutputStream(process.getOutputStream(), 1 << 16);
    tail = new Tail(process.getErrorStream());
    tail.start();
    daemon("factorflow-frames", this::readFrames);
    daemon("factorflow-watch", this::watch);
  }

  /**
   * Starts a worker, sends it the first line, and reads its greeting.
   *
   * @param opening the first line: the worker's command and what it needs
   * @param cancelled asked twenty times a second: true ends the worker
   * @param progress gets frames of types that need no answer, in a thread of the process
   */
  public static WorkerProcess start(Launch launch, ObjectNode opening, BooleanSupplier cancelled,
      Consumer<Frame> progress) {
    List<String> command = launch.command();
    Process process;
    try {
      process = new ProcessBuilder(command).start();
    } catch (IOException failure) {
      String text = "FactorFlow cannot be started: " + failure.getMessage() + ". " + INSTALL;
      throw FactorFlowException.ofHost(text, failure);
    }
    WorkerProcess worker = new WorkerProcess(launch, command, process, cancelled, progress);
    try {
      worker.greet(opening);
      return worker;
    } catch (RuntimeException | Error failure) {
      worker.close();
      throw failure;
    }
  }

  private void greet(ObjectNode opening) {
    ObjectNode line = opening.deepCopy().put("protocol", Launch.PROTOCOL).put("version", Launch.VERSION);
    try {
      Frame.writeLine(in, line.put("heartbeat", launch.heartbeat()));
    } catch (IOException failure) {
      log.debug("FactorFlow ended before its first request", failure);
    }
    Frame hello = next(GREETING_MILLIS);
    String needed = "Its command must be FactorFlow " + Launch.VERSION + ", with Node 22.12 or newer. ";
    if (hello == null) {
      // It could not do anything: its host is the reason, except after a cancel.
      FactorFlowException reason = gone("ended before its greeting", needed + INSTALL);
      throw killed ? reason : FactorFlowException.ofHost(reason.getMessage(), null);
    }
    launch.requireGreeting(hello, place);
    greeted = true;
    log.info("FactorFlow {} started, Node {}, process {}", Launch.VERSION, hello.text("node"), process.pid());
  }

  /** Standard input, buffered. If it throws an IOException, {@link #take()} usually has the reason. */
  public OutputStream in() {
    return in;
  }

  public long pid() {
    return process.pid();
  }

  public boolean isAlive() {
    return process.isAlive() && !closed;
  }

  /** Replaces the function that reports a cancel: for the next task of a worker that serves several. */
  public void watchedBy(BooleanSupplier other) {
    cancelled = other;
  }

  /** Sends a request that has no answer, or whose answer is read by {@link #take()}. */
  public void send(ObjectNode request, byte[] payload) {
    try {
      new Frame(request.put("id", ++requests), payload).write(in);
      in.flush();
    } catch (IOException broken) {
      // The worker has ended. Its remaining frames, which are read next, contain the reason.
    }
  }

  /** Sends a request, and waits for its answer. {@code parts} gets the frames before it. */
  public Frame ask(ObjectNode request, byte[] payload, Consumer<Frame> parts) {
    send(request, payload);
    for (Frame frame = take(); frame != null; frame = take()) {
      if (frame.type().equals("answer")) return frame;
      parts.accept(frame);
    }
    throw gone("ended before it had answered " + request.path("type").asText(), "");
  }

  /**
   * The next frame; null when the worker has ended. Throws an error that the worker reports: Refused, if it
   * would occur again.
   */
  public Frame take() {
    Frame frame = next(Long.MAX_VALUE);
    if (frame == null) return null;
    JsonNode error = frame.type().equals("error") ? frame.header() : frame.header().path("error");
    if (error.isObject()) throw FactorFlowException.of(error, launch.moreMemory());
    return frame;
  }

  private Frame next(long millis) {
    long until = millis == Long.MAX_VALUE ? Long.MAX_VALUE : System.currentTimeMillis() + millis;
    while (System.currentTimeMillis() < until) {
      Object frame;
      try {
        frame = frames.poll(POLL_MILLIS, TimeUnit.MILLISECONDS);
      } catch (InterruptedException interrupt) {
        close();
        Thread.currentThread().interrupt();
        throw new FactorFlowException("FactorFlow's training was interrupted", interrupt);
      }
      if (frame == null) continue;
      if (frame instanceof Frame read) return read;
      if (frame == end) return null;
      if (killed || hung || frame instanceof EOFException) throw gone("ended inside a frame", "");
      String message = ((IOException) frame).getMessage();
      String reason = place + " cannot be understood: " + message + ". " + INSTALL + tail.said();
      throw greeted ? new FactorFlowException(reason) : FactorFlowException.ofHost(reason, null);
    }
    throw new FactorFlowException(place + " has not answered for " + millis / 1000 + " s" + tail.said());
  }

  /**
   * The failure of a worker that ended without giving a reason: its exit status, and the last text on its
   * standard error.
   */
  public FactorFlowException gone(String when, String advice) {
    int status = 0;
    try {
      if (process.waitFor(GRACE_MILLIS, TimeUnit.MILLISECONDS)) status = process.exitValue();
      tail.join(GRACE_MILLIS);
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
    }
    if (hung) {
      long seconds = Math.max(1, launch.timeoutMillis() / 1000);
      String silent = place + " gave no sign of life for " + seconds + " s and was ended. ";
      return new FactorFlowException(silent + FactorFlowException.HANGS + tail.said());
    }
    if (killed) return new FactorFlowException(place + " was cancelled" + tail.said());
    String how = status > 128 ? ", by signal " + (status - 128) : ", with status " + status;
    String advised = FactorFlowException.adviceAfter(status, advice);
    String ending = advised.isEmpty() ? "" : ". " + advised;
    return new FactorFlowException(place + " " + when + how + ending + tail.said());
  }

  private void readFrames() {
    InputStream out = process.getInputStream();
    try {
      for (Frame frame = Frame.read(out); frame != null; frame = Frame.read(out)) {
        switch (frame.type()) {
          case "hello", "report", "factors", "equations", "lists", "answer", "error", "done" -> put(frame);
          default -> progress.accept(frame);
        }
      }
      put(end);
    } catch (IOException failure) {
      put(failure);
    }
  }

  private void put(Object frame) {
    try {
      while (!closed && !frames.offer(frame, POLL_MILLIS, TimeUnit.MILLISECONDS)) continue;
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
    }
  }

  private void watch() {
    try {
      while (!process.waitFor(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
        if (cancelled.getAsBoolean()) {
          stop();
          return;
        }
        hung = greeted && tail.isSilent(launch.timeoutMillis(), System.nanoTime() / 1_000_000);
        if (hung) {
          process.destroyForcibly();
          return;
        }
      }
    } catch (InterruptedException stop) {
      Thread.currentThread().interrupt();
    }
  }

  private void stop() throws InterruptedException {
    if (!process.isAlive()) return;
    killed = true;
    process.destroy();
    if (!process.waitFor(GRACE_MILLIS, TimeUnit.MILLISECONDS)) process.destroyForcibly();
  }

  /** Ends the process if it has not ended; frames that were not taken are dropped. */
  @Override
  public void close() {
    if (closed) return;
    closed = true;
    try {
      stop();
      process.getOutputStream().close();
    } catch (InterruptedException interrupt) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    } catch (IOException broken) {
      log.debug("Closing the input of a worker that has ended", broken);
    }
    frames.clear();
  }

  /** Waits for the end of a worker that has reported that it is done. */
  public void finish() {
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) log.warn("{} does not end after its work: it is killed", place);
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
    }
    close();
  }

  private static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
