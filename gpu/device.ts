import { collectGarbage } from '../engine/collect-garbage.ts';
import { mustEndFirst } from '../engine/endings.ts';
import { CapacityError, DeviceLostError, FactorFlowError, sessionClosed, UsageError } from '../engine/errors.ts';
import type { Device, DeviceLimits, KernelChoice, KernelTuning } from '../engine/executor.ts';
import { formatBytes } from '../engine/format.ts';
import type { JsonObject } from '../engine/json.ts';
import { type MatrixShape, type Partition, partitionBytes, partitionKey, type PartitionRef } from '../engine/partition.ts';
import type { Task, TaskResult } from '../engine/task.ts';
import { ThreadPool } from '../engine/thread-pool.ts';
import { workerFile } from '../engine/worker-file.ts';
import type { AcquireOptions } from './webgpu/acquire.ts';
import type { GpuInfo } from './webgpu/gpu-info.ts';
import { deviceBytes, sharedCopy } from './device/host-columns.ts';
import { strideOf, STRIDE_STEP } from './device/resources.ts';
import type { TuneUpdateValues } from './tasks/tune-update.ts';
import { KernelTuner, type TunedKernels } from './tuner.ts';
import { TunerCache } from './device/tuner-cache.ts';
import { chooseUpdate } from './update/choose.ts';
import type { UpdateProblem } from './update/variant.ts';
import { StoreChanges } from './store-changes.ts';
import type { GpuCommand, GpuRequest, StoreChange } from './worker.ts';

export interface GpuDeviceOptions extends AcquireOptions {
  /** Bytes of the GPU's memory that may be used; WebGPU does not tell how many there are. Default: no bound. */
  readonly memoryBytes?: number;
  /** Where measured choices are kept; default: the user's cache folder. */
  readonly tunedKernels?: TunedKernels;
}

/** Requests that the thread has at a time, so that it can submit one while the GPU is at work on another. */
const REQUESTS = 4;

/** Seconds of measuring in front of a training run, for each side. */
const TUNE_SECONDS = 2;

/** Shared memory that may wait for its collection. */
const COLLECT_BYTES = 256 << 20;

interface Stored {
  /** Of a partition that was put, or that a task gave. */
  readonly host?: Partition;
  /** A task may have written it on the device since. */
  changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
}

/**
 * One GPU, owned by a thread of its own. What is put stays where it is and goes to the GPU when a task first names it;
 * puts, allocations and releases reach the thread with the next request, in order. Tasks that are sent together overlap
 * as far as the GPU's own queue does: see Turns.
 */
export class GpuDevice implements Device {
  readonly name = 'gpu';
  readonly kind = 'gpu';
  readonly inOrder = true;
  readonly parallelism = 1;
  readonly strideStep = STRIDE_STEP;
  readonly capacityBytes: number;
  readonly bindingBytes: number;
  readonly limits: DeviceLimits;
  readonly description: string;
  readonly info: GpuInfo;
  readonly #pool: ThreadPool;
  readonly #tuner: KernelTuner;
  readonly #store = new Map<string, Stored>();
  readonly #changes = new StoreChanges();
  #usedBytes = 0;
  #collectable = 0;
  /** Grows when there is memory to be collected; the thread that sees a new number collects its garbage. */
  #collection = 0;
  #lost: DeviceLostError | undefined;
  #closing = false;
  readonly #ended: () => void;

  private constructor(pool: ThreadPool, info: GpuInfo, memoryBytes: number, tunedKernels: TunedKernels) {
    this.#pool = pool;
    this.#tuner = new KernelTuner(info, tunedKernels);
    this.info = info;
    this.capacityBytes = memoryBytes;
    this.bindingBytes = Math.min(info.limits.bindingBytes, info.limits.bufferBytes);
    const { workgroupBytes, workgroupThreads } = info.limits;
    this.limits = { workgroupBytes, workgroupThreads, teamLanes: info.features.includes('subgroups') ? 32 : info.features.includes('quads') ? 4 : 1 };
    this.description = describe(info);
    this.#ended = mustEndFirst(() => {
      pool.hurry();
      return this.close();
    });
  }

  /** Throws UsageError with the reason when there is no adapter. */
  static async open({ memoryBytes = Number.POSITIVE_INFINITY, tunedKernels = new TunerCache(), ...options }: GpuDeviceOptions = {}): Promise<GpuDevice> {
    let device: GpuDevice | undefined;
    const crashed = (cause: unknown) => (device === undefined ? cannotOpen(cause) : device.#lose(cause));
    const pool = new ThreadPool(workerFile(import.meta.url, './worker'), 1, {}, { requests: REQUESTS, atomics: 'disabled', crashed });
    try {
      const request: GpuRequest = { changes: [], command: { type: 'open', options }, collection: 0 };
      const { outcome } = await pool.run(() => request);
      device = new GpuDevice(pool, outcome.values as unknown as GpuInfo, memoryBytes, tunedKernels);
      return device;
    } catch (cause) {
      await pool.close();
      throw cause instanceof FactorFlowError ? cause : cannotOpen(cause);
    }
  }

  put(ref: PartitionRef, partition: Partition): void {
    const key = partitionKey(ref);
    if (this.#hasSame(key, partition)) return;
    const bytes = deviceBytes(partition);
    this.#require(key, bytes, Math.max(0, ...Object.values(partition.columns).map((column) => column.byteLength)), bytes > 0);
    // Another thread would get a copy of an array that is not shared, and of all that lies in the same memory.
    const host = { ...partition, columns: Object.fromEntries(Object.entries(partition.columns).map(([name, column]) => [name, sharedCopy(column)])) };
    this.#hold(key, { host, changed: false, bytes }, { put: key, partition: host });
  }

  allocate(ref: PartitionRef, { rows, columns, contents }: MatrixShape): void {
    const key = partitionKey(ref);
    const bytes = rows * strideOf(columns) * 4;
    this.#require(key, bytes, bytes, true);
    this.#hold(key, { changed: true, bytes }, { allocate: key, shape: { rows, columns, contents } });
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const { kernel, params } = task;
    const keys = (refs: Readonly<Record<string, PartitionRef>>) => Object.fromEntries(Object.entries(refs).map(([name, ref]) => [name, partitionKey(ref)]));
    const [inputs, outputs] = [keys(task.inputs), keys(task.outputs)];
    for (const [name, key] of Object.entries(inputs)) {
      if (!this.#store.has(key)) throw new Error(`task ${kernel}: input ${name} (${key}) is not on device ${this.name}`);
    }
    for (const key of Object.values(outputs)) {
      const stored = this.#store.get(key);
      if (stored !== undefined) stored.changed = true;
    }
    const { outcome, milliseconds } = await this.#request({ type: 'task', kernel, params, inputs, outputs }, signal);
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined) throw new Error(`task ${kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    const { rows, bytesUp = 0, bytesDown = 0, values = {} } = outcome;
    return { metrics: { rows, bytesUp, bytesDown, milliseconds }, values };
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    const key = partitionKey(ref);
    const stored = this.#store.get(key);
    if (stored === undefined) throw new Error(`partition ${key} is not on device ${this.name}`);
    if (stored.host !== undefined && !(stored.changed && stored.bytes > 0)) return stored.host;
    const { outcome } = await this.#request({ type: 'fetch', key });
    const fetched = outcome.partitions?.fetched;
    if (fetched === undefined) throw new Error(`partition ${key} did not come back from device ${this.name}`);
    if (fetched.layout === 'factors') this.#collect(partitionBytes(fetched));
    return fetched;
  }

  async choose(problem: JsonObject): Promise<KernelChoice> {
    const update = problem as unknown as UpdateProblem;
    return chooseUpdate(this.info, update, await this.#tuner.known(update));
  }

  async tune(problem: JsonObject, block: PartitionRef, how: 'where-it-pays' | 'thorough', signal?: AbortSignal): Promise<KernelTuning | undefined> {
    const update = problem as unknown as UpdateProblem;
    const thorough = how === 'thorough';
    if (!thorough && !(await this.#tuner.pays(update))) return undefined;
    const effort = { seconds: thorough ? Number.POSITIVE_INFINITY : TUNE_SECONDS, thorough };
    return this.#tuner.tune(update, effort, async (params) => {
      const { values } = await this.run({ kernel: 'tune-update', inputs: { block }, outputs: {}, params }, signal);
      return values as unknown as TuneUpdateValues;
    });
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const stored = this.#store.get(key);
    if (stored === undefined) return;
    this.#forget(key, stored);
    this.#changes.note({ release: key });
    if (stored.host !== undefined) this.#collect(partitionBytes(stored.host));
  }

  /** Ratings that were put before need not go again: the same arrays, which no task has written. */
  #hasSame(key: string, partition: Partition): boolean {
    const stored = this.#store.get(key);
    if (stored?.host === undefined || stored.changed) return false;
    const [known, given] = [stored.host.columns, Object.entries(partition.columns)];
    return partition.layout === 'rating-block' && given.length === Object.keys(known).length && given.every(([name, column]) => known[name] === column);
  }

  /** Shared memory that this thread, or soon the other, has no more use for; see collectGarbage. */
  #collect(bytes: number): void {
    this.#collectable += bytes;
    if (this.#collectable < COLLECT_BYTES) return;
    this.#collectable = 0;
    this.#collection++;
    collectGarbage();
  }

  async trim(): Promise<void> {
    if (this.#lost === undefined && !this.#closing) await this.#request({ type: 'trim' });
  }

  /** Ends the GPU, or its thread, as a crash would: what a test needs to see what becomes of a run. */
  async lose(what: 'device' | 'thread' = 'device'): Promise<void> {
    await this.#request({ type: 'lose', what });
  }

  async close(): Promise<void> {
    if (!this.#closing && this.#lost === undefined) {
      this.#closing = true;
      // A thread that ended by itself has closed already.
      await this.#request({ type: 'close' }).catch(() => undefined);
    }
    await this.#pool.close();
    this.#ended();
    this.#store.clear();
  }

  async #request(command: GpuCommand, signal?: AbortSignal) {
    const tell = this.#changes.promise();
    try {
      if (this.#lost !== undefined) throw this.#lost;
      // It would come behind the end of the GPU.
      if (this.#closing && command.type !== 'close') throw sessionClosed();
      return await this.#pool.run((): GpuRequest => ({ changes: tell(), command, collection: this.#collection }), signal);
    } catch (error) {
      if (error instanceof DeviceLostError) this.#lost ??= error;
      throw error;
    }
  }

  #hold(key: string, stored: Stored, change: StoreChange): void {
    const old = this.#store.get(key);
    if (old !== undefined) this.#forget(key, old);
    this.#store.set(key, stored);
    this.#usedBytes += stored.bytes;
    this.#changes.note(change);
  }

  #forget(key: string, stored: Stored): void {
    this.#usedBytes -= stored.bytes;
    this.#store.delete(key);
  }

  /** Throws CapacityError before anything is sent. */
  #require(key: string, bytes: number, largest: number, onDevice: boolean): void {
    if (onDevice && largest > this.bindingBytes) {
      throw new CapacityError(`${key} needs ${formatBytes(largest)} (${largest} bytes) in one buffer, but ${this.info.name} binds at most ${formatBytes(this.bindingBytes)} (${this.bindingBytes} bytes)`, {
        phase: 'gpu',
        advice: 'Use a smaller rank, fewer ratings, or device cpu',
      });
    }
    const have = this.capacityBytes - this.#usedBytes;
    if (bytes <= have) return;
    throw new CapacityError(`the memory given to the GPU is full: need ${bytes} bytes, have ${have}`, { phase: 'gpu', advice: 'Use a smaller rank, give it more, or use device cpu' });
  }

  #lose(cause: unknown): DeviceLostError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#lost ??= new DeviceLostError(`the thread of the GPU ${this.info.name} ended (${reason})`, { phase: 'gpu', cause });
    return this.#lost;
  }
}

function cannotOpen(cause: unknown): UsageError {
  const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
  return new UsageError(`no GPU: it could not be opened (${reason})`, { advice: "Update the graphics card's driver, see factorflow doctor, or use device cpu", cause });
}

/** "NVIDIA H200; f16, subgroups, tensor" */
export function describe({ name, features, software }: GpuInfo): string {
  const marks = [...features, ...(software ? ['computes on the processor'] : [])];
  return marks.length === 0 ? name : `${name}; ${marks.join(', ')}`;
}
