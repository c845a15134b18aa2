import type { Device } from './executor.ts';
import type { ExecutionContext } from './operator.ts';
import { type MatrixShape, type Partition, partitionKey, type PartitionRef } from './partition.ts';
import type { Task, TaskResult } from './task.ts';

/**
 * A device for the length of one run: what is put, allocated or written through it, and not released by the time the scope
 * closes, is released then. A run that fails or is cancelled halfway so leaves nothing behind.
 */
class DeviceScope implements Device {
  readonly #device: Device;
  readonly #live = new Map<string, PartitionRef>();
  #closed = false;

  constructor(device: Device) {
    this.#device = device;
  }

  get name() {
    return this.#device.name;
  }

  get kind() {
    return this.#device.kind;
  }

  get parallelism() {
    return this.#device.parallelism;
  }

  get inOrder() {
    return this.#device.inOrder;
  }

  get capacityBytes() {
    return this.#device.capacityBytes;
  }

  get bindingBytes() {
    return this.#device.bindingBytes;
  }

  get strideStep() {
    return this.#device.strideStep;
  }

  get limits() {
    return this.#device.limits;
  }

  get description() {
    return this.#device.description;
  }

  get choose() {
    return this.#device.choose?.bind(this.#device);
  }

  get tune() {
    return this.#device.tune?.bind(this.#device);
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
      for (const ref of Object.values(task.outputs)) this.#hold(ref);
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
    // Somebody who did not wait for their task: nobody will ask for what it wrote.
    if (this.#closed) this.#device.release(ref);
    else this.#live.set(partitionKey(ref), ref);
  }
}

/**
 * Runs `work` with scopes of the context's devices: whatever it leaves on a device is released when it ends, in whichever way, and what
 * devices keep of that for others is freed: a run's data is the bulk of the process's memory, and saving what came of it takes some again.
 */
export async function inDeviceScope<Result>(ctx: ExecutionContext, work: (scoped: ExecutionContext) => Promise<Result>): Promise<Result> {
  const scope = openDeviceScope(ctx);
  try {
    return await work(scope.ctx);
  } finally {
    await scope.close();
    // A device that is lost by now does not take the outcome along: whoever wants something of it next hears of that.
    await Promise.allSettled(ctx.executor.devices.map((device) => device.trim()));
  }
}

/** The same for streams, which have no single end to wait for: the caller closes. */
export function openDeviceScope(ctx: ExecutionContext): { readonly ctx: ExecutionContext; close(): Promise<void> } {
  const devices = ctx.executor.devices.map((device) => new DeviceScope(device));
  const close = async () => void (await Promise.all(devices.map((device) => device.close())));
  return { ctx: { ...ctx, executor: { devices, close } }, close };
}
