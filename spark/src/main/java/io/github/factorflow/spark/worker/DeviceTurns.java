package io.github.factorflow.spark.worker;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Lets one worker at a time use each GPU of this JVM. If GPUs are resources of the tasks, Spark's scheduler
 * already ensures this; this class is for GPUs that spark.factorflow.device names, and for auto in local
 * mode.
 */
public final class DeviceTurns {

  private static final Map<String, Semaphore> turns = new ConcurrentHashMap<>();

  private DeviceTurns() {}

  /** Waits for the device; the returned action releases it. */
  public static Runnable take(String device, BooleanSupplier cancelled) {
    if (device.equals("cpu")) return () -> {};
    Semaphore turn = turns.computeIfAbsent(device, name -> new Semaphore(1));
    try {
      while (!turn.tryAcquire(50, TimeUnit.MILLISECONDS)) {
        if (cancelled.getAsBoolean()) throw new FactorFlowException(
          "FactorFlow was cancelled while it waited for " + device
        );
      }
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new FactorFlowException("FactorFlow was interrupted while it waited for " + device, interrupt);
    }
    return turn::release;
  }
}
