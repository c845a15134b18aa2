import type { Device, Executor } from './device.ts';
import type { ExecutionContext } from './context.ts';
import { type MatrixShape, type Partition, partitionKey, type PartitionRef } from '../partition.ts';
import type { Task, TaskResult } from '../task.ts';
import { HostMemory } from './host-memory.ts';

/**
 * A device for the length of one run. It knows every partition that is alive there: what is put, allocated or written through
 * it, and not released by the time it closes, is released then.
 */
class HeldDevice implements Device {
  readonly #device: Device;
  readonly #live = new Map<string, PartitionRef>();
  #closed = false;

  constructor(device: Device) {
    this.#device = device;
  }

  get info() {
    return this.#device.info;
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#device.put(ref, partition);
    this.#hold(ref);
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#device.allocate(ref, shape);
    this.#hold(ref);
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    try {
      return await this.#device.run(task, signal);
    } finally {
      for (const name in task.outputs) this.#hold(task.outputs[name]);
    }
  }

  fetch(ref: PartitionRef): Promise<Partition> {
    return this.#device.fetch(ref);
  }

  release(ref: PartitionRef): void {
    this.#live.delete(partitionKey(ref));
    this.#device.release(ref);
  }

  trim(): Promise<void> {
    return this.#device.trim();
  }

  /** Releases what is left; the device itself stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const ref of this.#live.values()) this.#device.release(ref);
    this.#live.clear();
  }

  #hold(ref: PartitionRef): void {
    // The task of a caller that did not wait for it: its output has no reader any more.
    if (this.#closed) this.#device.release(ref);
    else this.#live.set(partitionKey(ref), ref);
  }
}

/**
 * Everything that one run has alive, on every device and in host memory. `close` releases the rest, in whichever way the run
 * ended; the devices stay open.
 */
export class Holdings {
  readonly ctx: ExecutionContext;
  readonly #executor: Executor;

  constructor(ctx: ExecutionContext) {
    const devices = ctx.executor.devices.map((device) => new HeldDevice(device));
    const memory = new HostMemory();
    const close = async () => void (await Promise.all([...devices, memory].map((device) => device.close())));
    this.#executor = { devices, memory, close };
    this.ctx = { ...ctx, executor: this.#executor };
  }

  close(): Promise<void> {
    return this.#executor.close();
  }

  /** Runs `work` with holdings of its own. */
  static async within<Result>(ctx: ExecutionContext, work: (held: ExecutionContext) => Promise<Result>): Promise<Result> {
    const holdings = new Holdings(ctx);
    try {
      return await work(holdings.ctx);
    } finally {
      await holdings.close();
    }
  }

  /**
   * The same for a whole run: memory that devices keep for others is freed at its end, since a run's data is the bulk of the
   * process's memory, and saving the outcome takes some again.
   */
  static async ofRun<Result>(ctx: ExecutionContext, work: (held: ExecutionContext) => Promise<Result>): Promise<Result> {
    try {
      return await Holdings.within(ctx, work);
    } finally {
      // A device that is lost by now does not take the outcome along: its next user hears of that.
      await Promise.allSettled(ctx.executor.devices.map((device) => device.trim()));
    }
  }
}
