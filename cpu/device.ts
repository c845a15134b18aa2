import { counted } from '../engine/format.ts';
import { availableParallelism } from 'node:os';
import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { DeviceLostError, UsageError } from '../engine/errors.ts';
import type { Device } from '../engine/run/device.ts';
import { hostMeter, type MemoryMeter } from '../engine/run/memory-meter.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import {
  type MatrixShape,
  type Partition,
  partitionBytes,
  partitionKey,
  type PartitionRef,
  pagedArray,
  sharedArray,
} from '../engine/partition.ts';
import type { Place } from '../engine/plan/place.ts';
import { readSpilled } from './read-spilled.ts';
import type { Task, TaskResult } from '../engine/task.ts';
import { ThreadPool } from '../engine/threads/thread-pool.ts';
import { sentPartition, type SentPartition } from '../engine/threads/wide-views.ts';
import { workerFile } from '../engine/threads/worker-file.ts';
import { Arena } from './arena.ts';
import { type MatrixView, SCRATCH_BYTES, STRIDE_STEP } from './handler.ts';
import { availableBuild, compileKernels, type KernelBuild } from './compile-kernels.ts';
import type { CpuRequest, CpuWorkerData } from './worker.ts';

const MAXIMUM_PAGES = 65_536;

/** Released shared memory that may wait before threads collect it, where memory is not scarce. */
export const COLLECT_BYTES = 64 << 20;
/** The same as a share of what is held: collecting stops the calling thread, for which others may wait. */
export const COLLECT_SHARE = 2;
/** Most released bytes that wait, for a share of much memory. */
const MOST_WAITING = 4 * 2 ** 30;

/** Threads that may end under one task. */
const MOST_ATTEMPTS = 3;

/** A thread that ended by itself. */
class ThreadEnded extends Error {}

/** An error for a thread that ended; one without memory keeps its own. */
function threadEnded(cause: unknown): Error {
  if (!(cause instanceof Error)) return new ThreadEnded(String(cause), { cause });
  return 'code' in cause && cause.code === 'ERR_WORKER_OUT_OF_MEMORY'
    ? cause
    : new ThreadEnded(cause.message, { cause });
}

interface CpuDeviceOptions {
  readonly threads?: number;
  readonly build?: KernelBuild;
  readonly place?: Place;
  readonly collectsHere?: boolean;
  readonly handlers?: URL;
  readonly repeatable?: (kernel: string) => boolean;
  readonly loads?: string;
  /** Shared memory that may be released before the threads are told to collect it. */
  readonly collectBytes?: number;
}

type Stored = { readonly host: Partition } | { readonly matrix: MatrixView };

/**
 * All CPU threads together as one device; each thread runs tasks of any kind. Matrices live in one shared
 * WebAssembly memory (4 GiB at most), host partitions stay in the SharedArrayBuffers they came in and reach
 * the kernels in chunks.
 */
export class CpuDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory: MemoryMeter;
  readonly #arena: Arena;
  readonly #pool: ThreadPool;
  readonly #scratch: readonly number[];
  readonly #store = new Map<string, Stored>();
  readonly #collectsHere: boolean;
  readonly #repeatable: (kernel: string) => boolean;
  #collectBytes: number;
  #leaves = false;
  /** Bytes of the host partitions. */
  #hostBytes = 0;
  #releasedBytes = 0;
  /** Grows when there is memory to be collected; a thread that sees a new number collects its garbage. */
  #collection = 0;

  /**
   * `build`: by default the faster one; `simd` gives the same bits on every processor, relaxed SIMD may not.
   * `collectsHere`: false leaves the garbage of the calling thread alone, whose event loop may not stop for
   * it. `handlers`: a module with those of further tasks (`GivenHandlers`). `repeatable`: true for tasks that
   * step nothing in place, which another thread runs again where one ended by itself. `loads`: the task of
   * `handlers` whose modules threads load as they begin.
   */
  constructor({
    threads = availableParallelism(),
    build = availableBuild(),
    place = 'cpu',
    collectsHere = true,
    handlers,
    repeatable = () => false,
    loads,
    collectBytes = COLLECT_BYTES,
  }: CpuDeviceOptions = {}) {
    checkThreads(threads);
    this.#repeatable = repeatable;
    this.#collectsHere = collectsHere;
    this.#collectBytes = collectBytes;
    const memory = new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES, shared: true });
    this.#arena = new Arena(memory, MAXIMUM_PAGES);
    this.#scratch = Array.from({ length: threads }, () => this.#arena.allocate(SCRATCH_BYTES));
    // The scratch of threads is no part of the capacity.
    this.#arena.meter.add(-threads * SCRATCH_BYTES);
    this.memory = this.#arena.meter;
    this.info = {
      place,
      kind: 'cpu',
      parallelism: threads,
      inOrder: false,
      wholePasses: false,
      ownMemory: false,
      capacityBytes: this.#arena.capacityBytes - threads * SCRATCH_BYTES,
      strideStep: STRIDE_STEP,
      description: `${counted(threads, 'thread')}, WebAssembly ${build}`,
    };
    const workerData: CpuWorkerData = {
      memory,
      compiled: compileKernels(build),
      handlers: handlers?.href,
      loads,
    };
    this.#pool = new ThreadPool(
      workerFile(new URL('./worker.js', import.meta.url)),
      threads,
      { ...workerData },
      { crashed: threadEnded },
    );
  }

  put(ref: PartitionRef, partition: Partition): void {
    if (partition.layout === 'factors') this.#upload(ref, partition);
    else this.#keep(ref, partition);
  }

  #keep(ref: PartitionRef, partition: Partition): void {
    const key = partitionKey(ref);
    const old = this.#store.get(key);
    this.#hostBytes += partitionBytes(partition) - (old && 'host' in old ? partitionBytes(old.host) : 0);
    hostMeter.hold(partition);
    if (old && 'host' in old) hostMeter.drop(old.host);
    this.#store.set(key, { host: partition });
  }

  allocate(
    ref: PartitionRef,
    { layout = 'factors', contents = 'zeros', leaves, ...shape }: MatrixShape,
  ): void {
    if (leaves)
      this.#keep(ref, {
        layout,
        rows: shape.rows,
        width: shape.columns,
        columns: { values: pagedArray(Float32Array, shape.rows * shape.stride) },
      });
    else if (layout === 'factors') this.#allocateMatrix(ref, shape, contents === 'zeros');
    else
      this.put(ref, { layout, rows: shape.rows, columns: { values: sharedArray(Float32Array, shape.rows) } });
  }

  #allocateMatrix(
    ref: PartitionRef,
    shape: Omit<MatrixShape, 'layout' | 'contents' | 'leaves'>,
    clear = true,
  ): MatrixView {
    const bytes = shape.rows * shape.stride * 4;
    const pointer = this.#arena.allocate(bytes);
    if (clear) new Uint8Array(this.#arena.memory.buffer, pointer, bytes).fill(0);
    const matrix = { pointer, ...shape };
    this.#store.set(partitionKey(ref), { matrix });
    return matrix;
  }

  #upload(ref: PartitionRef, { rows, columns, packed }: Partition): void {
    const values = columns.values as Float32Array;
    const rank = rows === 0 ? 0 : values.length / rows;
    const stride = packed ? rank : Math.ceil(rank / STRIDE_STEP) * STRIDE_STEP;
    const { pointer } = this.#allocateMatrix(ref, { rows, columns: rank, stride });
    const target = new Float32Array(this.#arena.memory.buffer, pointer, rows * stride);
    if (stride === rank) target.set(values);
    else
      for (let row = 0; row < rows; row++)
        target.set(values.subarray(row * rank, (row + 1) * rank), row * stride);
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    this.#pool.requireOpen();
    const partitions: Record<string, SentPartition> = {};
    const matrices: Record<string, MatrixView> = {};
    const resolve = (name: string, ref: PartitionRef, required: boolean) => {
      const stored = this.#store.get(partitionKey(ref));
      if (stored === undefined) {
        if (required)
          throw new Error(
            `task ${task.kernel}: input ${name} (${partitionKey(ref)}) is not on device ${this.info.place}`,
          );
      } else if ('host' in stored) partitions[name] = sentPartition(stored.host);
      else matrices[name] = stored.matrix;
    };
    for (const [name, ref] of Object.entries(task.inputs)) resolve(name, ref, true);
    for (const [name, ref] of Object.entries(task.outputs)) resolve(name, ref, false);
    const {
      outcome,
      start,
      milliseconds,
      slot: thread,
    } = await this.#runAgain(task.kernel, () =>
      this.#pool.run((slot): CpuRequest => {
        // When the task begins, not when it is sent: what others have released since then is collected.
        if (!this.#leaves) this.#collect();
        return {
          kernel: task.kernel,
          params: task.params,
          partitions,
          matrices,
          scratch: this.#scratch[slot],
          collection: this.#collection,
        };
      }, signal),
    );
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined)
        throw new Error(`task ${task.kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    const { rows, bytesUp = 0, bytesDown = 0, values = {}, spans = [] } = outcome;
    return {
      metrics: { rows, bytesUp, bytesDown, milliseconds },
      values,
      spans: [{ row: `thread ${thread + 1}`, name: task.kernel, start, milliseconds }, ...spans],
    };
  }

  /** Runs a task once more, and again, where its thread ended by itself and it may be repeated. */
  async #runAgain<T>(kernel: string, run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run();
      } catch (error) {
        if (!(error instanceof ThreadEnded)) throw error;
        if (attempt < MOST_ATTEMPTS && this.#repeatable(kernel)) continue;
        const times = attempt === 1 ? '' : `, ${attempt} times`;
        throw new DeviceLostError(
          `a thread of the CPU ended in the middle of the task ${kernel} (${error.message})${times}`,
          {
            phase: 'cpu',
            device: this.info.place,
            advice: 'Run it again; with fewer workers, if memory is short',
            cause: error.cause,
          },
        );
      }
    }
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    this.#pool.requireOpen();
    const stored = this.#store.get(partitionKey(ref));
    if (stored === undefined)
      throw new Error(`partition ${partitionKey(ref)} is not on device ${this.info.place}`);
    if ('host' in stored) return stored.host.spilled ? readSpilled(stored.host.spilled) : stored.host;
    const { pointer, rows, columns, stride } = stored.matrix;
    const padded = new Float32Array(this.#arena.memory.buffer, pointer, rows * stride);
    const values = new Float32Array(new SharedArrayBuffer(rows * columns * 4));
    if (stride === columns) values.set(padded);
    else
      for (let row = 0; row < rows; row++)
        values.set(padded.subarray(row * stride, row * stride + columns), row * columns);
    return {
      layout: 'factors',
      rows,
      columns: { values },
      ...(stride % STRIDE_STEP === 0 ? {} : { packed: true }),
    };
  }

  release(ref: PartitionRef): void {
    const key = partitionKey(ref);
    const stored = this.#store.get(key);
    if (stored === undefined) return;
    if ('matrix' in stored) this.#arena.free(stored.matrix.pointer);
    else {
      const bytes = partitionBytes(stored.host);
      this.#hostBytes -= bytes;
      hostMeter.drop(stored.host);
      if (!stored.host.reused) this.#releasedBytes += bytes;
    }
    this.#store.delete(key);
  }

  async trim(): Promise<void> {
    this.#leaves = false;
    if (this.#releasedBytes < this.#collectBytes && this.#collectBytes >= COLLECT_BYTES) return;
    this.#collect(0);
    const request = {
      kernel: 'rest',
      params: {},
      partitions: {},
      matrices: {},
      collection: this.#collection,
    };
    // One request for each thread: they are all taken at once, so each thread has one.
    await Promise.all(
      this.#scratch.map((scratch) => this.#pool.run((): CpuRequest => ({ ...request, scratch }))),
    );
  }

  saveMemory(collectBytes: number): void {
    this.#collectBytes = Math.min(this.#collectBytes, collectBytes);
  }

  leaveGarbage(): void {
    this.#leaves = true;
  }

  #collect(
    leastBytes = Math.max(
      this.#collectBytes,
      this.#collectBytes < COLLECT_BYTES ? 0 : Math.min(MOST_WAITING, this.#hostBytes / COLLECT_SHARE),
    ),
  ): void {
    if (this.#releasedBytes < leastBytes) return;
    this.#releasedBytes = 0;
    this.#collection++;
    if (this.#collectsHere) collectGarbage();
  }

  async close(): Promise<void> {
    await this.#pool.close();
    for (const stored of this.#store.values()) if ('host' in stored) hostMeter.drop(stored.host);
    this.#store.clear();
  }
}

/** Throws UsageError. */
function checkThreads(threads: number): void {
  if (!Number.isInteger(threads) || threads < 1 || threads > 256)
    throw new UsageError(`workers must be a whole number from 1 to 256, got ${threads}`);
}

/**
 * Devices that share out the threads, at least one each, at the places cpu, cpu:1, cpu:2, ... `given`: as for
 * one device.
 */
export function openCpus(
  count: number,
  threads = availableParallelism(),
  given: Pick<CpuDeviceOptions, 'handlers' | 'repeatable' | 'loads' | 'collectBytes'> = {},
): CpuDevice[] {
  checkThreads(threads);
  return Array.from({ length: count }, (_, number) => {
    const share = Math.floor(threads / count) + (number < threads % count ? 1 : 0);
    return new CpuDevice({
      threads: Math.max(1, share),
      place: number === 0 ? 'cpu' : `cpu:${number}`,
      ...given,
    });
  });
}
