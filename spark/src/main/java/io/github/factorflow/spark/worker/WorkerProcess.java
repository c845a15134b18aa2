package io.github.factorflow.spark.worker;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
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
    Thread ending = new Thread(() -> running.forEach(Process::destroyForcibly), "factorflow-exit");
    Runtime.getRuntime().addShutdownHook(ending);
  }

  /** Most frames that are read ahead; after that the worker waits until one is taken. */
  private static final int AHEAD = 8;

  private final List<String> command;
  private final Process process;
  private final OutputStream in;
  private final Tail tail;
  private final Thread tailThread;
  private final BlockingQueue<Object> frames = new ArrayBlockingQueue<>(AHEAD);
  private final Consumer<Frame> progress;
  private final Object end = new Object();
  private final Silence silence;
  private volatile boolean greeted = false;
  private volatile boolean killed = false;
  private volatile boolean hung = false;
  private volatile boolean closed = false;
  private volatile BooleanSupplier cancelled;

  private WorkerProcess(List<String> command, Process process, long timeoutMillis, BooleanSupplier cancelled,
      Consumer<Frame> progress) {
    this.command = command;
    this.process = process;
    running.add(process);
    process.onExit().thenAccept(running::remove);
    this.cancelled = cancelled;
    this.progress = progress;
    silence = new Silence(timeoutMillis);
    in = new BufferedOutputStream(process.getOutputStream(), 1 << 16);
    tail = new Tail(process.getErrorStream());
    tailThread = daemon("factorflow-stderr", tail);
    daemon("factorflow-frames", this::readFrames);
    daemon("factorflow-watch", this::watch);
  }

  /**
   * Starts a worker, sends it the first line, and reads its greeting.
   *
   * @param flags what of the host it may use
   * @param cancelled asked twenty times a second: true ends the worker
   * @param progress gets frames of types that need no answer, in a thread of the process
   */
  public static WorkerProcess start(Launch launch, List<String> flags, ObjectNode request,
      BooleanSupplier cancelled, Consumer<Frame> progress) {
    List<String> command = new ArrayList<>(launch.command());
    command.addAll(flags);
    Process process;
    try {
      process = new ProcessBuilder(command).start();
    } catch (IOException failure) {
      String text = "FactorFlow cannot be started: " + failure.getMessage() + ". " + Advice.INSTALL;
      throw FactorFlowException.ofHost(text, failure);
    }
    WorkerProcess worker = new WorkerProcess(command, process, launch.timeoutMillis(), cancelled, progress);
    try {
      worker.greet(request, launch.heartbeat());
      return worker;
    } catch (RuntimeException | Error failure) {
      worker.close();
      throw failure;
    }
  }

  private void greet(ObjectNode request, long heartbeat) {
    try {
      new FrameWriter(in).line(request.deepCopy().put("heartbeat", heartbeat));
    } catch (IOException failure) {
      log.debug("FactorFlow ended before its first request", failure);
    }
    Frame hello = take(GREETING_MILLIS);
    String needed = "Its command must be FactorFlow " + Launch.VERSION + ", with Node 22.12 or newer. ";
    if (hello == null) throw unfit("ended before its greeting", needed + Advice.INSTALL);
    String greeting = place() + " gave no greeting, but " + hello.type() + ". ";
    if (!"hello".equals(hello.type())) throw FactorFlowException.ofHost(greeting + Advice.INSTALL, null);
    String version = hello.text("version");
    if (hello.number("protocol") != Launch.PROTOCOL || !version.equals(Launch.VERSION)) {
      String theirs = version + " (protocol " + hello.number("protocol") + ")";
      String ours = Launch.VERSION + " (protocol " + Launch.PROTOCOL + ")";
      String text = "FactorFlow " + theirs + " does not fit the plugin's " + ours + ": " + place();
      throw FactorFlowException.ofHost(text + ". Put the same version on all hosts", null);
    }
    greeted = true;
    log.info("FactorFlow {} started, Node {}, process {}", version, hello.text("node"), process.pid());
  }

  /** A worker that ended before it could do anything: its host is the reason, except after a cancel. */
  private FactorFlowException unfit(String when, String advice) {
    FactorFlowException reason = gone(when, advice);
    return killed ? reason : FactorFlowException.ofHost(reason.getMessage(), null);
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

  /** The next frame; null when the worker has ended. */
  public Frame take() {
    return take(Long.MAX_VALUE);
  }

  private Frame take(long millis) {
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
      String reason = place() + " cannot be understood: " + message + ". " + Advice.INSTALL + said();
      throw greeted ? new FactorFlowException(reason) : FactorFlowException.ofHost(reason, null);
    }
    throw new FactorFlowException(place() + " has not answered for " + millis / 1000 + " s" + said());
  }

  /**
   * The failure of a worker that ended without giving a reason: its exit status, and the last text on its
   * standard error.
   */
  public FactorFlowException gone(String when, String advice) {
    int status;
    try {
      boolean ended = process.waitFor(GRACE_MILLIS, TimeUnit.MILLISECONDS);
      tailThread.join(GRACE_MILLIS);
      status = ended ? process.exitValue() : 0;
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      status = 0;
    }
    if (hung) {
      String silent = place() + " gave no sign of life for " + silence.seconds() + " s and was ended. ";
      return new FactorFlowException(silent + Advice.HANGS + said());
    }
    if (killed) return new FactorFlowException(place() + " was cancelled" + said());
    String how = status > 128 ? ", by signal " + (status - 128) : ", with status " + status;
    String advised = Advice.afterStatus(status, advice);
    String ending = advised.isEmpty() ? "" : ". " + advised;
    return new FactorFlowException(place() + " " + when + how + ending + said());
  }

  private String place() {
    return "FactorFlow's worker on " + HostName.get() + " (" + String.join(" ", command) + ")";
  }

  private String said() {
    String text = tail.text();
    return text.isEmpty() ? "" : ". It said: " + text;
  }

  private void readFrames() {
    FrameReader reader = new FrameReader(process.getInputStream());
    try {
      for (Frame frame = reader.next(); frame != null; frame = reader.next()) {
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
        if (greeted && silence.exceeds(tail.signs(), System.nanoTime() / 1_000_000)) {
          hung = true;
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
      if (!process.waitFor(10, TimeUnit.SECONDS))
        log.warn("{} does not end after its work: it is killed", place());
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
