import type { Device, Executor, SpillStore, WireRequest } from './device.ts';
import { type ExecutionContext, followed } from './context.ts';
import { type MatrixShape, type Partition, partitionKey, type PartitionRef } from '../partition.ts';
import type { WrittenFile } from '../spill/spilled-partition.ts';
import type { Task, TaskResult } from '../task.ts';
import { HostMemory } from './host-memory.ts';

/**
 * A device for the duration of one run. It records every partition that is put, allocated or written through
 * it, and releases the remaining ones when it closes.
 */
class HeldDevice<Held extends Device = Device> implements Device {
  readonly #device: Held;
  readonly #copies: SpillStore['copies'] | undefined;
  readonly #live = new Map<string, PartitionRef>();
  #closed = false;

  /** `copies`: copies of spilled partitions, which are freed with the partition. */
  constructor(device: Held, copies?: SpillStore['copies']) {
    [this.#device, this.#copies] = [device, copies];
  }

  get info() {
    return this.#device.info;
  }

  get memory() {
    return this.#device.memory;
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#device.put(ref, partition);
    this.hold(ref);
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#device.allocate(ref, shape);
    this.hold(ref);
  }

  /**
   * Outputs are recorded when the task starts: steps that are sent later may free them before the end of the
   * task is known.
   */
  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    for (const name in task.outputs) this.hold(task.outputs[name]);
    try {
      return await this.#device.run(task, signal);
    } finally {
      // The run has ended without waiting for this task, so its outputs are released here.
      if (this.#closed) for (const name in task.outputs) this.#device.release(task.outputs[name]);
    }
  }

  fetch(ref: PartitionRef, wire?: WireRequest, into?: Float32Array): Promise<Partition> {
    return this.#device.fetch(ref, wire, into);
  }

  release(ref: PartitionRef): void {
    this.#live.delete(partitionKey(ref));
    this.#device.release(ref);
  }

  async leaveHost(refs: readonly PartitionRef[]): Promise<void> {
    await this.#device.leaveHost?.(refs);
  }

  trim(): Promise<void> {
    return this.#device.trim();
  }

  /** Releases the remaining partitions; the device itself stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const ref of this.#live.values()) this.#drop(ref);
    this.#live.clear();
  }

  #drop(ref: PartitionRef): void {
    this.#device.release(ref);
    this.#copies?.free(this.info.place, ref);
  }

  protected get device(): Held {
    return this.#device;
  }

  protected hold(ref: PartitionRef): void {
    // No one reads the partition any more.
    if (this.#closed) this.#drop(ref);
    else this.#live.set(partitionKey(ref), ref);
  }
}

class HeldSpill extends HeldDevice<SpillStore> implements SpillStore {
  async write(
    refs: readonly PartitionRef[],
    writer: (file: string) => Promise<WrittenFile>,
  ): Promise<readonly Partition[]> {
    const written = await this.device.write(refs, writer);
    for (const ref of refs) this.hold(ref);
    return written;
  }

  requireRoom(bytes: number): Promise<void> {
    return this.device.requireRoom(bytes);
  }

  keep(ref: PartitionRef): Partition {
    return this.device.keep(ref);
  }

  get copies() {
    return this.device.copies;
  }
}

class HeldExecutor implements Executor {
  readonly memory: HostMemory;
  readonly files: Executor['files'];
  readonly spilled?: HeldSpill;
  readonly #executor: Executor;
  readonly #held: HeldDevice[] = [];

  constructor(executor: Executor) {
    this.#executor = executor;
    this.files = executor.files;
    this.memory = new HostMemory(executor.files?.());
    if (executor.spilled) this.spilled = new HeldSpill(executor.spilled);
  }

  /** In the executor's order; devices that open later are appended. */
  get devices(): readonly Device[] {
    for (const device of this.#executor.devices.slice(this.#held.length))
      this.#held.push(new HeldDevice(device, this.spilled?.copies));
    return this.#held;
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.#held, this.memory, ...(this.spilled ? [this.spilled] : [])].map((device) => device.close()),
    );
  }
}

/**
 * All partitions of one run: on every device, in host memory and in files. `close` releases the remaining
 * ones, after success and after failure; the devices stay open.
 */
export class Holdings {
  readonly ctx: ExecutionContext;
  readonly #executor: Executor;

  constructor(ctx: ExecutionContext) {
    this.#executor = new HeldExecutor(ctx.executor);
    this.ctx = { ...ctx, executor: this.#executor };
  }

  close(): Promise<void> {
    return this.#executor.close();
  }

  /** Runs `work`, and then releases the partitions that it has left on any device. */
  static within<Result>(
    ctx: ExecutionContext,
    work: (held: ExecutionContext) => Promise<Result>,
  ): Promise<Result> {
    return followed(ctx, async () => {
      const holdings = new Holdings(ctx);
      try {
        return await work(holdings.ctx);
      } finally {
        await holdings.close();
      }
    });
  }

  /**
   * Like `within`, and records the peak of memory at each place in the metrics. If other runs of the process
   * use memory at that time, it is included.
   */
  static async measured<Result>(
    ctx: ExecutionContext,
    work: (held: ExecutionContext) => Promise<Result>,
  ): Promise<Result> {
    return Holdings.within(ctx, async (held) => {
      const { memory: host, devices: open, spilled } = held.executor;
      const devices = [host, ...open, ...(spilled ? [spilled] : [])];
      for (const { memory } of devices) memory?.restart();
      try {
        return await work(held);
      } finally {
        for (const { info, memory } of devices)
          if (memory !== undefined) held.metrics.addPeak(info.place, memory.peak);
      }
    });
  }

  /**
   * Like `within`, for a complete run. At its end, devices also free the memory that they keep for reuse: see
   * tidied.
   */
  static ofRun<Result>(
    ctx: ExecutionContext,
    work: (held: ExecutionContext) => Promise<Result>,
    tidies = true,
  ): Promise<Result> {
    return Holdings.tidied(ctx, () => Holdings.within(ctx, work), tidies);
  }

  /**
   * Runs `work`; after it, devices free the memory that they keep for reuse. That memory is most of the
   * process's memory, and saving the model needs memory. `tidies`: false if the process ends soon and memory
   * is not scarce.
   */
  static async tidied<Result>(
    ctx: ExecutionContext,
    work: () => Promise<Result>,
    tidies = true,
  ): Promise<Result> {
    try {
      return await work();
    } finally {
      if (tidies) await Holdings.#tidy(ctx);
    }
  }

  static async #tidy(ctx: ExecutionContext): Promise<void> {
    // If a device is lost at this point, the run does not fail: the next call to the device reports the
    // loss.
    const { devices, spilled } = ctx.executor;
    const trimmed = (kept: readonly Device[]) => Promise.allSettled(kept.map((device) => device.trim()));
    // The release of GPU memory is not awaited, since it is not memory of the process. The GPU's next
    // request waits for it.
    void trimmed(devices.filter(({ info }) => info.ownMemory));
    await trimmed([...devices.filter(({ info }) => !info.ownMemory), ...(spilled ? [spilled] : [])]);
  }
}
