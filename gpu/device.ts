import { CapacityError } from '../engine/errors.ts';
import { formatBytes } from '../engine/format.ts';
import {
  isShared,
  type MatrixShape,
  type Partition,
  partitionBytes,
  partitionKey,
  type PartitionRef,
  sharedArray,
  sharedCopy,
  type SharedColumn,
} from '../engine/partition.ts';
import { type DeviceInfo, SOFTWARE_MARK } from '../engine/plan/device-info.ts';
import type { Place } from '../engine/plan/place.ts';
import type { Device, WireRequest, WireMemory } from '../engine/run/device.ts';
import { type MemoryMeter, hostMeter } from '../engine/run/memory-meter.ts';
import type { Wire } from '../engine/run/step.ts';
import type { Task, TaskMetrics, TaskResult } from '../engine/task.ts';
import { mustEndFirst } from '../engine/threads/endings.ts';
import { sentPartition } from '../engine/threads/wide-views.ts';
import type { TaskOf } from '../operators/tasks/tasks.ts';
import {
  packedBytes,
  strideOf,
  WIRE_ROWS,
  wireRows,
  STRIDE_STEP,
  vectorLayouts,
} from './device/resources.ts';
import type { TimeVariantsTask } from './handler.ts';
import { type RequestPool, ThreadRequests } from './thread-requests.ts';
import { KernelTuner, type TunedKernels } from './update/choice/tuner.ts';
import type { GpuInfo } from './webgpu/gpu-info.ts';

export interface GpuDeviceOptions {
  /** Default: gpu:0. */
  readonly place?: Place | undefined;
  /** See GpuThreadOptions. */
  readonly memoryBytes?: number | undefined;
  /** GPUs near the same processor socket have the same number; undefined if unknown. See DeviceInfo. */
  readonly group?: number | undefined;
  /** Measured kernel choices of earlier runs. */
  readonly tunedKernels: TunedKernels;
}

const noWork: TaskMetrics = { rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0 };

/**
 * One GPU, as the engine sees it. The WebGPU device and all data on it belong to an OpenedGpu, which executes
 * the requests that this class sends: in Node in a thread of its own (gpu/worker.ts).
 *
 * `put` leaves a partition in host memory; it is uploaded when the first task names it. Puts, allocations and
 * releases are not sent at once but together with the next request, in order. Several tasks may be sent
 * without waiting; they start in that order, and the host's work for one overlaps with the GPU's work for
 * another (see Turns).
 */
export class GpuDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory: MemoryMeter;
  readonly adapter: GpuInfo;
  readonly #requests: ThreadRequests;
  readonly #tuner: KernelTuner;
  /**
   * The two tasks that this class answers itself. Choosing kernels needs no GPU; measuring them takes several
   * tasks of the GPU's thread.
   */
  readonly #answers: {
    readonly [K in 'choose-update' | 'tune-update']: (
      task: TaskOf<K>,
      signal?: AbortSignal,
    ) => Promise<TaskResult>;
  } = {
    'choose-update': async ({ params }) => ({ metrics: noWork, values: await this.#tuner.choose(params) }),
    'tune-update': ({ inputs, params }, signal) => this.#tune(inputs, params, signal),
  };
  readonly #held: HeldPartitions;
  /** Number of fetches of rows for other devices. */
  #fetches = 0;
  #closed: Promise<void> | undefined;
  readonly #ended: () => void;

  /** `adapter`: the GPU that executes the requests of `pool`. */
  constructor(
    pool: RequestPool,
    adapter: GpuInfo,
    { place = 'gpu:0', memoryBytes, group, tunedKernels }: GpuDeviceOptions,
  ) {
    this.#requests = new ThreadRequests(pool);
    this.memory = this.#requests.memory;
    this.#tuner = new KernelTuner(adapter, tunedKernels);
    this.adapter = adapter;
    this.info = infoOf(adapter, place, memoryBytes, group);
    this.#held = new HeldPartitions(
      { place, name: adapter.name },
      { capacity: memoryBytes ?? Number.POSITIVE_INFINITY, binding: bindingBytesOf(adapter) },
    );
    this.#ended = mustEndFirst(() => {
      pool.returnEarly();
      return this.close();
    });
  }

  /** Fails all requests from now on, since the GPU's thread has ended. Returns the error. */
  lost(cause: unknown): Error {
    return this.#requests.lose(cause, { name: this.adapter.name, place: this.info.place });
  }

  put(ref: PartitionRef, partition: Partition): void {
    const key = partitionKey(ref);
    if (this.#held.hasSame(key, partition)) return;
    const bytes = deviceBytes(partition);
    this.#held.requireRoom(
      key,
      bytes,
      Math.max(0, ...Object.values(partition.columns).map((column) => column.byteLength)),
      bytes > 0,
    );
    // A message to a thread copies arrays that are not in shared memory, and each with the whole ArrayBuffer
    // that it is a view of.
    const host = {
      ...partition,
      columns: Object.fromEntries(
        Object.entries(partition.columns).map(([name, column]) => [
          name,
          isShared(column.buffer) ? column : sharedCopy(column),
        ]),
      ),
    };
    this.#held.hold(key, { host, changed: false, bytes, stride: deviceStride(partition) });
    this.#requests.changes.note({ put: key, partition: sentPartition(host) });
  }

  allocate(ref: PartitionRef, { layout = 'factors', rows, columns, contents, halfOnly }: MatrixShape): void {
    if (layout !== 'factors')
      return this.put(ref, { layout, rows, columns: { values: sharedArray(Float32Array, rows * columns) } });
    const key = partitionKey(ref);
    const bytes = halfOnly ? (rows + 1) * strideOf(columns) * 2 : rows * strideOf(columns) * 4;
    this.#held.requireRoom(key, bytes, bytes, true);
    this.#held.hold(key, {
      changed: true,
      bytes,
      ...(halfOnly ? { halfBytes: rows * strideOf(columns) * 2 } : {}),
      stride: strideOf(columns),
    });
    this.#requests.changes.note({ allocate: key, shape: { rows, columns, contents, halfOnly } });
  }

  run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const answers: Readonly<
      Record<string, ((task: never, signal?: AbortSignal) => Promise<TaskResult>) | undefined>
    > = this.#answers;
    const answer = answers[task.kernel];
    // `task` was built from its kernel's contract, so its parameters have that kernel's type.
    return answer === undefined ? this.#send(task, signal) : answer(task as never, signal);
  }

  async #send(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const { kernel, params, clocked } = task;
    const keys = (refs: Readonly<Record<string, PartitionRef>>) =>
      Object.fromEntries(Object.entries(refs).map(([name, ref]) => [name, partitionKey(ref)]));
    const [inputs, outputs] = [keys(task.inputs), keys(task.outputs)];
    for (const [name, key] of Object.entries(inputs)) {
      if (this.#held.get(key) === undefined)
        throw new Error(`task ${kernel}: input ${name} (${key}) is not on device ${this.info.place}`);
    }
    for (const key of Object.values(outputs)) this.#held.written(key);
    const { outcome, start, milliseconds } = await this.#requests.send(
      { type: 'task', kernel, params, inputs, outputs, clocked },
      signal,
    );
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined) throw new Error(`task ${kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    // An uploaded matrix of factors needs no copy in host memory.
    if (kernel === 'upload' && this.#held.get(inputs.data)?.host?.layout === 'factors')
      this.#requests.collect(this.#held.leaveHost(inputs.data));
    const { rows, bytesUp = 0, bytesDown = 0, values = {}, spans = [], ended } = outcome;
    return {
      metrics: { rows, bytesUp, bytesDown, milliseconds },
      values,
      ended,
      spans: [{ row: 'tasks', name: kernel, start, milliseconds }, ...spans],
    };
  }

  async fetch(ref: PartitionRef, wire?: WireRequest): Promise<Partition> {
    const key = partitionKey(ref);
    const stored = this.#held.get(key);
    if (stored === undefined) throw new Error(`partition ${key} is not on device ${this.info.place}`);
    if (stored.host !== undefined && !(stored.changed && stored.bytes > 0)) return stored.host;
    if (wire && isMatrix(stored)) return this.#fetchWire(key, stored, wire);
    const { outcome } = await this.#requests.send({ type: 'fetch', key });
    const fetched = outcome.partitions?.fetched;
    if (fetched === undefined)
      throw new Error(`partition ${key} did not come back from device ${this.info.place}`);
    if (fetched.layout === 'factors') this.#requests.collect(partitionBytes(fetched));
    return fetched;
  }

  /**
   * Downloads a matrix in the form in which another device takes it: float32 or float16, with padding. `take`
   * allocates the host memory, and the GPU's thread writes to it. The result refers to that memory, since the
   * thread's reply has another object for the same memory, which `release` would not recognize.
   */
  async #fetchWire(
    key: string,
    { bytes, halfBytes = bytes / 2, stride = 0 }: HeldPartition,
    { form, take, arriving }: WireRequest,
  ): Promise<Partition> {
    const own = { f32: bytes, f16: halfBytes, i8: packedBytes(halfBytes / 2 / stride, stride) }[form];
    const memory = take(own);
    const came = { layout: WIRE_ROWS, rows: 0, ...wireIn(memory, form, own) };
    const number = this.#fetches++;
    const { outcome } = await this.#requests.send({ type: 'fetch', key, into: wireRows(came), number });
    const { arrived } = came.inFiles ?? {};
    if (arrived !== undefined) {
      const ended = this.#requests.send({ type: 'await-fetch', number }).then(() => undefined);
      arriving?.(ended);
      // After `arriving`, so that the sender's error is known before a receiver fails for lack of rows.
      ended.catch(() => void arrived.fill(-1));
      if (arriving === undefined) await ended;
    }
    return { ...came, rows: outcome.rows };
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const stored = this.#held.get(key);
    if (stored === undefined) return;
    this.#held.forget(key);
    this.#requests.changes.note({ release: key });
    if (stored.host !== undefined && !stored.host.reused && stored.host.layout !== WIRE_ROWS)
      this.#requests.collect(partitionBytes(stored.host));
  }

  async leaveHost(refs: readonly PartitionRef[]): Promise<void> {
    let bytes = 0;
    for (const key of refs.map(partitionKey)) {
      if (this.#held.get(key)?.host === undefined) continue;
      this.#requests.changes.note({ leave: key });
      bytes += this.#held.leaveHost(key);
    }
    this.#requests.collect(bytes);
    await this.#requests.send({ type: 'collect' });
  }

  async #tune(
    inputs: TaskOf<'tune-update'>['inputs'],
    { how, ...problem }: TaskOf<'tune-update'>['params'],
    signal?: AbortSignal,
  ): Promise<TaskResult> {
    let metrics = noWork;
    const tuning = await this.#tuner.tuneOnRequest(problem, how, async (params) => {
      const { metrics: more, values } = await this.#send(
        { kernel: 'time-variants', inputs, outputs: {}, params },
        signal,
      );
      metrics = {
        rows: metrics.rows + more.rows,
        bytesUp: metrics.bytesUp + more.bytesUp,
        bytesDown: metrics.bytesDown + more.bytesDown,
        milliseconds: metrics.milliseconds + more.milliseconds,
      };
      return values as unknown as TimeVariantsTask['values'];
    });
    return { metrics, values: { tuning } };
  }

  async trim(): Promise<void> {
    if (this.#requests.open) await this.#requests.send({ type: 'trim' });
  }

  /** Ends the GPU, or its thread, as a crash would, for tests of lost devices. */
  async lose(what: 'device' | 'thread' = 'device'): Promise<void> {
    await this.#requests.send({ type: 'lose', what });
  }

  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    await this.#requests.close();
    this.#ended();
    this.#held.forgetAll();
  }
}

function isMatrix({ host }: HeldPartition): boolean {
  return host === undefined || host.layout === 'factors';
}

/** Largest buffer that a kernel can bind, in bytes. */
function bindingBytesOf({ limits }: GpuInfo): number {
  return Math.min(limits.bindingBytes, limits.bufferBytes);
}

/** The properties of a GPU that plans depend on. */
function infoOf(adapter: GpuInfo, place: Place, memoryBytes: number | undefined, group?: number): DeviceInfo {
  const { workgroupBytes, workgroupThreads } = adapter.limits;
  const teamLanes = adapter.features.includes('subgroups') ? 32 : adapter.features.includes('quads') ? 4 : 1;
  return {
    place,
    kind: 'gpu',
    parallelism: 1,
    inOrder: true,
    wholePasses: true,
    ownMemory: true,
    choosesKernels: true,
    capacityBytes: memoryBytes ?? null,
    bindingBytes: bindingBytesOf(adapter),
    strideStep: STRIDE_STEP,
    limits: { workgroupBytes, workgroupThreads, teamLanes, float16: adapter.features.includes('f16') },
    ...(group === undefined ? {} : { group }),
    description: describe(adapter),
  };
}

/** The device's description in messages, for example "NVIDIA H200; f16, subgroups, tensor". */
function describe({ name, features, software }: GpuInfo): string {
  const marks = [...features, ...(software ? [SOFTWARE_MARK] : [])];
  return marks.length === 0 ? name : `${name}; ${marks.join(', ')}`;
}

/** The main thread's record of a partition on a GPU. */
interface HeldPartition {
  /** The partition in host memory, as it was put or returned by a task. */
  readonly host?: Partition;
  /** True if the device may have newer contents than `host`, because a task wrote the partition. */
  readonly changed: boolean;
  /** Bytes of the device's memory. */
  readonly bytes: number;
  /** For a matrix that is stored only in float16: the bytes of its rows. */
  readonly halfBytes?: number;
  /** For a matrix: numbers of a row, with padding. */
  readonly stride?: number | undefined;
  /**
   * For a matrix whose host memory was given up here after the upload: that memory, so that `hasSame` can
   * recognize it. Absent once a task has written the matrix.
   */
  readonly source?: MatrixSource;
}

/**
 * The host memory from which a matrix was uploaded, as long as other code keeps it alive, and the matrix's
 * shape.
 */
interface MatrixSource extends RowShape {
  readonly memory: WeakRef<ArrayBufferLike>;
}

interface RowShape {
  readonly rows: number;
  /** Columns of a matrix without padding; 0 for other layouts. */
  readonly width: number;
}

/** The bounds of a device's memory, in bytes. */
interface MemoryBounds {
  /** Of all partitions together. */
  readonly capacity: number;
  /** Of one buffer. */
  readonly binding: number;
}

/**
 * The partitions of one GPU by key. Counts their bytes on the device, and reports their copies in host memory
 * to the meter of host memory.
 */
class HeldPartitions {
  readonly #held = new Map<string, HeldPartition>();
  readonly #device: { readonly place: Place; readonly name: string };
  readonly #bounds: MemoryBounds;
  #usedBytes = 0;

  /** `device`: its place, and its adapter's name for errors. */
  constructor(device: { readonly place: Place; readonly name: string }, bounds: MemoryBounds) {
    [this.#device, this.#bounds] = [device, bounds];
  }

  get(key: string): HeldPartition | undefined {
    return this.#held.get(key);
  }

  /** Replaces the partition that the key had. */
  hold(key: string, held: HeldPartition): void {
    this.forget(key);
    this.#held.set(key, held);
    if (held.host !== undefined) hostMeter.hold(held.host);
    this.#usedBytes += held.bytes;
  }

  forget(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#usedBytes -= held.bytes;
    if (held.host !== undefined) hostMeter.drop(held.host);
    this.#held.delete(key);
  }

  forgetAll(): void {
    for (const key of this.#held.keys()) this.forget(key);
  }

  /**
   * Gives up the copy in host memory, so that the partition is only on the device. Returns the bytes of the
   * copy.
   */
  leaveHost(key: string): number {
    const { host, bytes, changed, stride } = this.#held.get(key) ?? {};
    if (host === undefined || bytes === undefined) return 0;
    this.#held.set(key, {
      changed: true,
      bytes,
      stride,
      ...(isMatrixOfItsOwn(host) &&
        !changed && { source: { memory: new WeakRef(host.columns.values.buffer), ...shapeOf(host) } }),
    });
    hostMeter.drop(host);
    return partitionBytes(host);
  }

  /**
   * True if the device already has these ratings or factors, so that they need not be uploaded again: the
   * same memory and shape, and no task has written them.
   */
  hasSame(key: string, partition: Partition): boolean {
    const { source, host, changed } = this.#held.get(key) ?? {};
    if (source !== undefined)
      return (
        isMatrixOfItsOwn(partition) &&
        isSameShape(shapeOf(partition), source) &&
        source.memory.deref() === partition.columns.values.buffer
      );
    if (host === undefined || changed) return false;
    const [known, given] = [host.columns, Object.entries(partition.columns)];
    return (
      (partition.layout === 'rating-block' || partition.layout === 'factors') &&
      partition.layout === host.layout &&
      isSameShape(shapeOf(partition), shapeOf(host)) &&
      given.length === Object.keys(known).length &&
      given.every(([name, column]) => isSame(known[name], column))
    );
  }

  /** Notes that a task writes the partition on the device. */
  written(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    const { source: _, ...rest } = held;
    this.#held.set(key, { ...rest, changed: true });
  }

  /**
   * Throws CapacityError if the device has no room for `bytes`, or, for data on the device, cannot bind a
   * buffer of `largest` bytes.
   */
  requireRoom(key: string, bytes: number, largest: number, onDevice: boolean): void {
    const { place, name } = this.#device;
    const { capacity, binding } = this.#bounds;
    if (onDevice && largest > binding) {
      throw new CapacityError(
        `${key} needs ${formatBytes(largest)} (${largest} bytes) in one buffer, but ${name} binds at ` +
          `most ${formatBytes(binding)} (${binding} bytes)`,
        { phase: 'gpu', device: place, advice: 'Use a smaller rank, fewer ratings, or device cpu' },
      );
    }
    const have = capacity - this.#usedBytes;
    if (bytes <= have) return;
    throw new CapacityError(`the memory given to the GPU is full: need ${bytes} bytes, have ${have}`, {
      phase: 'gpu',
      device: place,
      advice: 'Use a smaller rank, give it more, or use device cpu',
    });
  }
}

/** True for a matrix of factors that is the only content of its memory. */
function isMatrixOfItsOwn({ layout, columns }: Partition): boolean {
  return layout === 'factors' && columns.values.byteLength === columns.values.buffer.byteLength;
}

function shapeOf({ layout, rows, columns, width }: Partition): RowShape {
  return { rows, width: layout !== 'factors' || rows === 0 ? 0 : (width ?? columns.values.length / rows) };
}

function isSameShape(one: RowShape, other: RowShape): boolean {
  return one.rows === other.rows && one.width === other.width;
}

function isSame(one: SharedColumn | undefined, other: SharedColumn): boolean {
  return (
    one === other ||
    (one?.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length)
  );
}

/** Numbers of a row of a matrix on the device, with padding; undefined for other partitions. */
function deviceStride({ layout, rows, columns, width }: Partition): number | undefined {
  if (layout !== 'factors' || rows === 0) return undefined;
  return strideOf(width ?? columns.values.length / rows);
}

/** Bytes that a partition takes on the device once a task names it; 0 for layouts that stay on the host. */
function deviceBytes(partition: Partition): number {
  const { layout, rows } = partition;
  if (layout === 'factors') return 4 * rows * (deviceStride(partition) ?? 0);
  return layout === 'rating-block' || layout === 'rating-list' || vectorLayouts.includes(layout)
    ? partitionBytes(partition)
    : 0;
}

/**
 * The columns of rows that are sent to another device: a view of the first `bytes` bytes of the memory that
 * was allocated for them, or a reference to memory files. `form` is the type of their numbers.
 */
function wireIn(memory: WireMemory, form: Wire, bytes: number): Pick<Partition, 'columns' | 'inFiles'> {
  if ('files' in memory) {
    const arrived = new Int32Array(new SharedArrayBuffer(4 * Math.ceil(bytes / memory.pieceBytes)));
    return { columns: {}, inFiles: { memory, form, bytes, arrived } };
  }
  return {
    columns: {
      values:
        form === 'i8'
          ? new Uint8Array(memory, 0, bytes)
          : form === 'f16'
            ? new Uint16Array(memory, 0, bytes / 2)
            : new Float32Array(memory, 0, bytes / 4),
    },
  };
}
