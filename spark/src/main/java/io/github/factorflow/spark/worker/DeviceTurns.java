package io.github.factorflow.spark.worker;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * One worker at a time on each GPU of this JVM. Spark's scheduling of GPUs sees to that where GPUs are resources of the tasks; this is for GPUs
 * that spark.factorflow.device names.
 */
public final class DeviceTurns {
  private static final Map<String, Semaphore> turns = new ConcurrentHashMap<>();

  private DeviceTurns() {}

  /** Waits for the device; the returned action gives it back. */
  public static Runnable take(String device, BooleanSupplier cancelled) {
    if (!device.startsWith("gpu")) return () -> {};
    Semaphore turn = turns.computeIfAbsent(device, name -> new Semaphore(1));
    try {
      while (!turn.tryAcquire(50, TimeUnit.MILLISECONDS)) {
        if (cancelled.getAsBoolean()) throw new FactorFlowException("FactorFlow was cancelled while it waited for " + device);
      }
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new FactorFlowException("FactorFlow was interrupted while it waited for " + device, interrupt);
    }
    return turn::release;
  }
}
