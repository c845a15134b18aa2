package io.github.factorflow.spark.run;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.factorflow.spark.Settings;
import io.github.factorflow.spark.worker.FactorFlowException;
import io.github.factorflow.spark.worker.Frame;
import io.github.factorflow.spark.worker.Launch;
import io.github.factorflow.spark.worker.WorkerProcess;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.resource.ResourceInformation;
import org.apache.spark.resource.ResourceProfile;
import org.apache.spark.resource.ResourceProfileBuilder;
import org.apache.spark.resource.ResourceProfileManager;
import org.apache.spark.resource.TaskResourceRequests;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The part of a host that a worker gets: a task asks for all cores and GPUs of one executor by a profile of
 * its stage, and the worker for what its task got.
 *
 * @param localCores threads in local mode, where tasks cannot ask for cores; 0 elsewhere
 * @param memory bytes of a worker, 0 without a limit
 * @param jvmShare bytes that the JVM itself takes outside of its heap
 */
public record Placement(
  Settings settings,
  int localCores,
  long memory,
  long jvmShare
) implements Serializable {
  private static final Logger log = LoggerFactory.getLogger(Placement.class);
  private static final long MIB = 1L << 20;
  private static final long LEAST_MEMORY = 256 * MIB;
  /**
   * One worker at a time uses each GPU of this JVM. If GPUs are resources of the tasks, Spark's scheduler already
   * ensures this; turns are for GPUs that spark.factorflow.device names, and for auto in local mode.
   */
  private static final Map<String, Semaphore> turns = new ConcurrentHashMap<>();

  public static Placement of(SparkContext context, Settings settings) {
    return new Placement(
      settings,
      context.isLocal() ? context.defaultParallelism() : 0,
      memory(context, settings),
      jvmShare(context.getConf())
    );
  }

  /**
   * A profile with which each task occupies a whole executor. Null if the cluster manager does not support
   * it, or if the default is as good.
   */
  public static ResourceProfile wholeExecutor(SparkContext context) {
    if (context.isLocal()) return null;
    SparkConf conf = context.getConf();
    int cores = executorCores(context);
    int gpus = conf.getInt("spark.executor.resource.gpu.amount", 0);
    double taskGpus = conf.getDouble("spark.task.resource.gpu.amount", 0);
    if (cores <= conf.getInt("spark.task.cpus", 1) && gpus == taskGpus) return null;
    TaskResourceRequests requests = new TaskResourceRequests().cpus(cores);
    if (gpus > 0) requests.resource("gpu", gpus);
    try {
      ResourceProfile profile = new ResourceProfileBuilder().require(requests).build();
      ResourceProfileManager known = context.resourceProfileManager();
      // One profile for all fits: with dynamic allocation, each profile has its own executors.
      return known.isSupported(profile) ? known.getEquivalentProfile(profile).getOrElse(() -> profile) : null;
    } catch (Exception unsupported) {
      log.info("FactorFlow's tasks have the default resources: {}", unsupported.getMessage());
      return null;
    }
  }

  /** The same work, whose tasks have a profile; null for the default one. */
  public static <T> RDD<T> withProfile(RDD<T> work, ResourceProfile profile) {
    return profile == null ? work : work.withResources(profile);
  }

  private static int executorCores(SparkContext context) {
    int set = context.getConf().getInt("spark.executor.cores", 0);
    if (set > 0) return set;
    return Executors.running(context)
      .mapToInt(executor -> executor.totalCores())
      .filter(cores -> cores > 0)
      .min()
      .orElse(1);
  }

  /** Starts a worker for a task. It ends if the task is cancelled. */
  public WorkerProcess start(TaskContext task, ObjectNode opening, Consumer<Frame> progress) {
    Launch launch = new Launch(
      settings.node(),
      settings.executable(),
      flags(task),
      settings.timeout(),
      moreMemory()
    );
    return WorkerProcess.start(launch, opening, task::isInterrupted, progress);
  }

  /** Starts a worker for a task when its device is free. The worker ends with the task, if not before. */
  public WorkerProcess startInTurn(TaskContext task, ObjectNode opening, Consumer<Frame> progress) {
    takeTurn(task, device(task));
    WorkerProcess worker = start(task, opening, progress);
    worker.watchedBy(() -> task.isInterrupted() || task.isCompleted());
    task.addTaskCompletionListener((TaskCompletionListener) done -> worker.close());
    return worker;
  }

  /** Waits for the device, which the task has until its end. */
  private static void takeTurn(TaskContext task, String device) {
    if (device.equals("cpu")) return;
    Semaphore turn = turns.computeIfAbsent(device, name -> new Semaphore(1));
    try {
      while (!turn.tryAcquire(50, TimeUnit.MILLISECONDS)) {
        if (task.isInterrupted()) throw new FactorFlowException(
          "FactorFlow was cancelled while it waited for " + device
        );
      }
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new FactorFlowException("FactorFlow was interrupted while it waited for " + device, interrupt);
    }
    task.addTaskCompletionListener((TaskCompletionListener) done -> turn.release());
  }

  /**
   * The device of a worker of this task: cpu, gpu, or gpu with indices. In local mode, where tasks have no
   * GPUs, also auto: the GPU of the machine if there is one.
   */
  private String device(TaskContext task) {
    String device = settings.device();
    ResourceInformation gpus = task.resourcesJMap().get("gpu");
    boolean isAuto = device.equals("auto");
    if (gpus == null) return isAuto && localCores == 0 ? "cpu" : device;
    if (!isAuto && !device.equals("gpu")) return device;
    List<String> addresses = Arrays.asList(gpus.addresses());
    for (String address : addresses) {
      if (!address.matches("\\d+")) throw new FactorFlowException(
        "The GPU " + address + " of this task has no index. Let " +
        "spark.executor.resource.gpu.discoveryScript print indices, or set spark.factorflow.device"
      );
    }
    return "gpu:" + String.join(",", addresses);
  }

  /**
   * The flags of this task's worker. Data that do not fit its memory are written to Spark's own folder for
   * such files, which is removed with the executor.
   */
  private List<String> flags(TaskContext task) {
    String files = folderOfFiles();
    List<String> flags = new ArrayList<>(
      List.of("--device", device(task), "--workers", String.valueOf(cores(task)), "--spill-dir", files)
    );
    if (memory > 0) flags.addAll(List.of("--memory-budget", memory / MIB + "MiB"));
    return flags;
  }

  /** Spark's own folder for temporary files on this executor. */
  static String folderOfFiles() {
    return SparkEnv.get().blockManager().diskBlockManager().localDirs()[0].getPath();
  }

  private int cores(TaskContext task) {
    return settings.cores() > 0 ? settings.cores() : localCores > 0 ? localCores : task.cpus();
  }

  /** True if a worker may have this memory. */
  public boolean allows(long bytes) {
    return memory <= 0 || bytes <= memory;
  }

  /**
   * Throws FactorFlowException if a worker may have less memory than it needs. {@code plan}: what needs it.
   */
  public void require(long bytes, String plan) {
    if (!allows(bytes)) throw new FactorFlowException(
      "A worker needs about " + mib(bytes) + " MiB of memory, and it may have " + mib(memory) + " (" + plan +
      "). " + moreMemory() + ", or set more spark.factorflow.workers"
    );
  }

  /** The setting that gives workers more memory. */
  private String moreMemory() {
    if (settings.memory() > 0 || localCores > 0) return "Raise spark.factorflow.memory";
    String kept = memory > 0 ? ": the JVM keeps " + mib(jvmShare) + " MiB of it" : "";
    return "Raise spark.executor.memoryOverhead, which a worker shares with its JVM" + kept;
  }

  /**
   * Bytes of factors that the driver can hold: an eighth of its memory, and half of the results that it
   * accepts.
   */
  public static long mostInDriver(SparkConf conf) {
    long results = conf.getSizeAsBytes("spark.driver.maxResultSize", "1g");
    return Math.min(results == 0 ? Long.MAX_VALUE : results / 2, Runtime.getRuntime().maxMemory() / 8);
  }

  private static long memory(SparkContext context, Settings settings) {
    SparkConf conf = context.getConf();
    if (settings.memory() > 0 || context.isLocal()) return settings.memory();
    boolean set = conf.contains("spark.executor.memoryOverhead");
    if (!set && !context.master().matches("(?s)(yarn|k8s).*")) return 0;
    long overhead = set
      ? conf.getSizeAsMb("spark.executor.memoryOverhead", "0") * MIB
      : Math.max(384 * MIB, (long) (conf.getDouble("spark.executor.memoryOverheadFactor", 0.1) * heap(conf)));
    long left = overhead - jvmShare(conf);
    if (left >= LEAST_MEMORY) return left;
    throw new FactorFlowException(
      "FactorFlow's workers have no memory: executors have " + mib(overhead) + " MiB outside of the heap, and " +
      "the JVM needs " + mib(jvmShare(conf)) + " of them. Set spark.executor.memoryOverhead to " +
      mib(jvmShare(conf) + 1024 * MIB) + "m or more, by the size of the data, or spark.factorflow.memory"
    );
  }

  /** The part of the memory overhead that the JVM itself uses: Spark's default for it. */
  private static long jvmShare(SparkConf conf) {
    return Math.max(384 * MIB, heap(conf) / 10);
  }

  private static long heap(SparkConf conf) {
    return conf.getSizeAsMb("spark.executor.memory", "1g") * MIB;
  }

  private static long mib(long bytes) {
    return (bytes + MIB - 1) / MIB;
  }
}
