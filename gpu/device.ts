import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { mustEndFirst } from '../engine/threads/endings.ts';
import { CapacityError, DeviceLostError, sessionClosed } from '../engine/errors.ts';
import type { Device, WireRequest } from '../engine/run/device.ts';
import { hostMeter, MemoryMeter } from '../engine/run/memory-meter.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import { formatBytes } from '../engine/format.ts';
import { type MatrixShape, type Partition, partitionBytes, partitionKey, type PartitionRef, sharedArray, type SharedColumn } from '../engine/partition.ts';
import type { Place } from '../engine/plan/place.ts';
import type { Task, TaskMetrics, TaskOutcome, TaskResult } from '../engine/task.ts';
import type { ThreadPool } from '../engine/threads/thread-pool.ts';
import { sentPartition } from '../engine/threads/wide-views.ts';
import { bindingBytesOf, infoOf } from './device-info.ts';
import { deviceBytes, sharedCopy, wireIn } from './device/host-columns.ts';
import { strideOf, WIRE_ROWS, wireRows } from './device/resources.ts';
import { GpuThread, type GpuThreadOptions } from './gpu-thread.ts';
import type { GpuInfo } from './webgpu/gpu-info.ts';
import type { TaskOf } from '../operators/tasks/tasks.ts';
import type { TimeVariantsTask } from './own-tasks.ts';
import { KernelTuner, type TunedKernels } from './tuner.ts';
import { TunerCache } from './device/tuner-cache.ts';
import { StoreChanges } from './store-changes.ts';
import type { GpuCommand, GpuRequest, StoreChange } from './worker.ts';

export interface GpuDeviceOptions extends GpuThreadOptions {
  /** Default: gpu:0. */
  readonly place?: Place;
  /** The folder of measured choices; default: the user's cache folder. */
  readonly tunedKernels?: TunedKernels;
  /** A thread that has begun to open such a GPU. */
  readonly thread?: GpuThread | undefined;
}

const noWork: TaskMetrics = { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 };

/** Shared memory that may wait for its collection. */
const COLLECT_BYTES = 256 << 20;

interface Stored {
  /** Of a partition that was put, or that a task gave. */
  readonly host?: Partition;
  /** A task may have written it on the device since. */
  changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  /** Of a matrix that is kept in float16 alone, those of its rows. */
  readonly halfBytes?: number;
}

/**
 * One GPU, owned by a thread of its own. What is put stays where it is and goes to the GPU when a task first names it;
 * puts, allocations and releases reach the thread with the next request, in order. Tasks that are sent together overlap
 * as far as the GPU's own queue does: see Turns.
 */
export class GpuDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory = new MemoryMeter();
  readonly adapter: GpuInfo;
  readonly #pool: ThreadPool;
  readonly #tuner: KernelTuner;
  /** The tasks that need no turn on the GPU, or several. */
  readonly #answers: { readonly [K in 'choose-update' | 'tune-update']: (task: TaskOf<K>, signal?: AbortSignal) => Promise<TaskResult> } = {
    'choose-update': async ({ params }) => ({ metrics: noWork, values: await this.#tuner.choose(params) }),
    'tune-update': ({ inputs, params }, signal) => this.#tune(inputs, params, signal),
  };
  readonly #store = new Map<string, Stored>();
  readonly #changes = new StoreChanges();
  readonly #capacityBytes: number;
  readonly #bindingBytes: number;
  #usedBytes = 0;
  #collectable = 0;
  /** Grows when there is memory to be collected; the thread that sees a new number collects its garbage. */
  #collection = 0;
  #lost: DeviceLostError | undefined;
  #closing = false;
  #closed: Promise<void> | undefined;
  readonly #ended: () => void;

  private constructor(pool: ThreadPool, adapter: GpuInfo, place: Place, memoryBytes: number | undefined, tunedKernels: TunedKernels) {
    this.#pool = pool;
    this.#tuner = new KernelTuner(adapter, tunedKernels);
    this.adapter = adapter;
    this.info = infoOf(adapter, place, memoryBytes);
    this.#capacityBytes = memoryBytes ?? Number.POSITIVE_INFINITY;
    this.#bindingBytes = bindingBytesOf(adapter);
    this.#ended = mustEndFirst(() => {
      pool.hurry();
      return this.close();
    });
  }

  /** Throws UsageError with the reason when there is no adapter. */
  static async open({ place = 'gpu:0', tunedKernels = new TunerCache(), thread: begun, ...options }: GpuDeviceOptions = {}): Promise<GpuDevice> {
    const thread = begun ?? new GpuThread(options);
    const device = new GpuDevice(thread.pool, await thread.info, place, options.memoryBytes, tunedKernels);
    thread.crashed = (cause) => device.#lose(cause);
    return device;
  }

  put(ref: PartitionRef, partition: Partition): void {
    const key = partitionKey(ref);
    if (this.#hasSame(key, partition)) return;
    const bytes = deviceBytes(partition);
    this.#require(key, bytes, Math.max(0, ...Object.values(partition.columns).map((column) => column.byteLength)), bytes > 0);
    // Another thread would get a copy of an array that is not shared, and of all that lies in the same memory.
    const host = { ...partition, columns: Object.fromEntries(Object.entries(partition.columns).map(([name, column]) => [name, sharedCopy(column)])) };
    this.#hold(key, { host, changed: false, bytes }, { put: key, partition: sentPartition(host) });
  }

  allocate(ref: PartitionRef, { layout = 'factors', rows, columns, contents, halfOnly }: MatrixShape): void {
    if (layout !== 'factors') return this.put(ref, { layout, rows, columns: { values: sharedArray(Float32Array, rows) } });
    const key = partitionKey(ref);
    const bytes = halfOnly ? (rows + 1) * strideOf(columns) * 2 : rows * strideOf(columns) * 4;
    this.#require(key, bytes, bytes, true);
    this.#hold(key, { changed: true, bytes, ...(halfOnly ? { halfBytes: rows * strideOf(columns) * 2 } : {}) }, { allocate: key, shape: { rows, columns, contents, halfOnly } });
  }

  run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const answers: Readonly<Record<string, ((task: never, signal?: AbortSignal) => Promise<TaskResult>) | undefined>> = this.#answers;
    const answer = answers[task.kernel];
    // A task is made by its contract, so its parameters are those of its kernel.
    return answer === undefined ? this.#send(task, signal) : answer(task as never, signal);
  }

  async #send(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const { kernel, params } = task;
    const keys = (refs: Readonly<Record<string, PartitionRef>>) => Object.fromEntries(Object.entries(refs).map(([name, ref]) => [name, partitionKey(ref)]));
    const [inputs, outputs] = [keys(task.inputs), keys(task.outputs)];
    for (const [name, key] of Object.entries(inputs)) {
      if (!this.#store.has(key)) throw new Error(`task ${kernel}: input ${name} (${key}) is not on device ${this.info.place}`);
    }
    for (const key of Object.values(outputs)) {
      const stored = this.#store.get(key);
      if (stored !== undefined) stored.changed = true;
    }
    const { outcome, start, milliseconds } = await this.#request({ type: 'task', kernel, params, inputs, outputs }, signal);
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined) throw new Error(`task ${kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    if (kernel === 'upload') this.#leaveMatrix(inputs.data);
    const { rows, bytesUp = 0, bytesDown = 0, values = {}, spans = [] } = outcome;
    return { metrics: { rows, bytesUp, bytesDown, milliseconds }, values, spans: [{ row: 'tasks', name: kernel, start, milliseconds }, ...spans] };
  }

  async fetch(ref: PartitionRef, wire?: WireRequest): Promise<Partition> {
    const key = partitionKey(ref);
    const stored = this.#store.get(key);
    if (stored === undefined) throw new Error(`partition ${key} is not on device ${this.info.place}`);
    if (stored.host !== undefined && !(stored.changed && stored.bytes > 0)) return stored.host;
    if (wire && isMatrix(stored)) return this.#fetchWire(key, stored, wire);
    const { outcome } = await this.#request({ type: 'fetch', key });
    const fetched = outcome.partitions?.fetched;
    if (fetched === undefined) throw new Error(`partition ${key} did not come back from device ${this.info.place}`);
    if (fetched.layout === 'factors') this.#collect(partitionBytes(fetched));
    return fetched;
  }

  /** The thread writes into the memory that was taken here: it gives another object for it, which would not be known when it is released. */
  async #fetchWire(key: string, { bytes, halfBytes = bytes / 2 }: Stored, { form, take }: WireRequest): Promise<Partition> {
    const own = form === 'f16' ? halfBytes : bytes;
    const memory = take(own);
    const came = { layout: WIRE_ROWS, rows: 0, ...wireIn(memory, form, own) };
    const { outcome } = await this.#request({ type: 'fetch', key, into: wireRows(came) });
    return { ...came, rows: outcome.rows };
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const stored = this.#store.get(key);
    if (stored === undefined) return;
    this.#forget(key, stored);
    this.#changes.note({ release: key });
    if (stored.host !== undefined && !stored.host.reused && stored.host.layout !== WIRE_ROWS) this.#collect(partitionBytes(stored.host));
  }

  async leaveHost(refs: readonly PartitionRef[]): Promise<void> {
    let bytes = 0;
    for (const key of refs.map(partitionKey)) {
      const stored = this.#store.get(key);
      if (stored?.host === undefined) continue;
      this.#changes.note({ leave: key });
      bytes += this.#leave(key, stored.host, stored);
    }
    this.#collect(bytes);
    await this.#request({ type: 'collect' });
  }

  async #tune(inputs: TaskOf<'tune-update'>['inputs'], { how, ...problem }: TaskOf<'tune-update'>['params'], signal?: AbortSignal): Promise<TaskResult> {
    let metrics = noWork;
    const tuning = await this.#tuner.tuneAsked(problem, how, async (params) => {
      const { metrics: more, values } = await this.#send({ kernel: 'time-variants', inputs, outputs: {}, params }, signal);
      metrics = { rows: metrics.rows + more.rows, bytesUp: metrics.bytesUp + more.bytesUp, bytesDown: metrics.bytesDown + more.bytesDown, milliseconds: metrics.milliseconds + more.milliseconds };
      return values as unknown as TimeVariantsTask['values'];
    });
    return { metrics, values: { tuning } };
  }

  /** Ratings and factors that were put before need not go again: the same memory, which no task has written. */
  #hasSame(key: string, partition: Partition): boolean {
    const stored = this.#store.get(key);
    if (stored?.host === undefined || stored.changed) return false;
    const [known, given] = [stored.host.columns, Object.entries(partition.columns)];
    return (partition.layout === 'rating-block' || partition.layout === 'factors') && given.length === Object.keys(known).length && given.every(([name, column]) => isSame(known[name], column));
  }

  /** Shared memory that this thread, or soon the other, has no more use for; see collectGarbage. */
  #collect(bytes: number): void {
    this.#collectable += bytes;
    if (this.#collectable < COLLECT_BYTES) return;
    this.#collectable = 0;
    this.#collection++;
    collectGarbage();
  }

  /** A matrix that has gone up is on the device alone. */
  #leaveMatrix(key: string): void {
    const stored = this.#store.get(key);
    if (stored?.host?.layout === 'factors') this.#collect(this.#leave(key, stored.host, stored));
  }

  /** Gives the bytes that this device no longer holds. */
  #leave(key: string, host: Partition, { bytes }: Stored): number {
    this.#store.set(key, { changed: true, bytes });
    hostMeter.drop(host);
    return partitionBytes(host);
  }

  async trim(): Promise<void> {
    if (this.#lost === undefined && !this.#closing) await this.#request({ type: 'trim' });
  }

  /** Ends the GPU, or its thread, as a crash would: what a test needs to see what becomes of a run. */
  async lose(what: 'device' | 'thread' = 'device'): Promise<void> {
    await this.#request({ type: 'lose', what });
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    if (!this.#closing && this.#lost === undefined) {
      this.#closing = true;
      // A thread that ended by itself has closed already.
      await this.#request({ type: 'close' }).catch(() => undefined);
    }
    await this.#pool.close();
    this.#ended();
    for (const [key, stored] of this.#store) this.#forget(key, stored);
  }

  async #request(command: GpuCommand, signal?: AbortSignal) {
    const tell = this.#changes.promise();
    try {
      if (this.#lost !== undefined) throw this.#lost;
      // It would come behind the end of the GPU.
      if (this.#closing && command.type !== 'close') throw sessionClosed();
      const answer = await this.#pool.run((): GpuRequest => ({ changes: tell(), command, collection: this.#collection }), signal);
      this.#count(answer.outcome.memory);
      return answer;
    } catch (error) {
      if (error instanceof DeviceLostError) this.#lost ??= error;
      throw error;
    }
  }

  /** Counts what the thread tells of its allocations since its last answer. */
  #count(memory: TaskOutcome['memory']): void {
    if (memory === undefined) return;
    this.memory.add(memory.peak - this.memory.now);
    this.memory.add(memory.now - this.memory.now);
  }

  #hold(key: string, stored: Stored, change: StoreChange): void {
    const old = this.#store.get(key);
    if (old !== undefined) this.#forget(key, old);
    this.#store.set(key, stored);
    if (stored.host !== undefined) hostMeter.hold(stored.host);
    this.#usedBytes += stored.bytes;
    this.#changes.note(change);
  }

  #forget(key: string, stored: Stored): void {
    this.#usedBytes -= stored.bytes;
    if (stored.host !== undefined) hostMeter.drop(stored.host);
    this.#store.delete(key);
  }

  /** Throws CapacityError before anything is sent. */
  #require(key: string, bytes: number, largest: number, onDevice: boolean): void {
    if (onDevice && largest > this.#bindingBytes) {
      throw new CapacityError(`${key} needs ${formatBytes(largest)} (${largest} bytes) in one buffer, but ${this.adapter.name} binds at most ${formatBytes(this.#bindingBytes)} (${this.#bindingBytes} bytes)`, {
        phase: 'gpu',
        device: this.info.place,
        advice: 'Use a smaller rank, fewer ratings, or device cpu',
      });
    }
    const have = this.#capacityBytes - this.#usedBytes;
    if (bytes <= have) return;
    throw new CapacityError(`the memory given to the GPU is full: need ${bytes} bytes, have ${have}`, { phase: 'gpu', device: this.info.place, advice: 'Use a smaller rank, give it more, or use device cpu' });
  }

  #lose(cause: unknown): DeviceLostError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#lost ??= new DeviceLostError(`the thread of the GPU ${this.adapter.name} ended (${reason})`, { phase: 'gpu', device: this.info.place, cause });
    return this.#lost;
  }
}

function isSame(one: SharedColumn | undefined, other: SharedColumn): boolean {
  return one === other || (one?.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length);
}

function isMatrix({ host }: Stored): boolean {
  return host === undefined || host.layout === 'factors';
}
