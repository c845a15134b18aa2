import { availableParallelism } from 'node:os';
import { DeviceLostError, UsageError } from '../engine/errors.ts';
import { counted, shown } from '../engine/format.ts';
import { type MatrixShape, type Partition, type PartitionRef, partitionKey } from '../engine/partition.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { Place } from '../engine/plan/place.ts';
import type { Device, WireRequest } from '../engine/run/device.ts';
import { COLLECT_BYTES, Garbage, setCollector } from '../engine/run/garbage.ts';
import type { MemoryMeter } from '../engine/run/memory-meter.ts';
import type { Task, TaskResult } from '../engine/task.ts';
import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { ThreadPool } from '../engine/threads/thread-pool.ts';
import { workerFile } from '../engine/threads/worker-file.ts';
import { availableBuild, compileKernels, type KernelBuild } from './compile-kernels.ts';
import { STRIDE_STEP } from './handler.ts';
import { readSpilled } from './read-spilled.ts';
import { CpuStore, MAXIMUM_PAGES } from './store.ts';
import type { CpuRequest, CpuWorkerData } from './worker.ts';

/** Most threads that may crash during one task. */
const MOST_ATTEMPTS = 3;

/** A thread that ended by itself. */
class ThreadEnded extends Error {}

/** An error for a crashed thread; an error about memory stays as it is. */
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
  /** Shared memory that may be released before threads are asked to collect garbage. */
  readonly collectBytes?: number;
}

/**
 * All CPU threads together as one device; each thread runs tasks of any kind. Factor matrices are in one
 * WebAssembly memory that the threads share (4 GiB at most). Other partitions stay in SharedArrayBuffers, and
 * handlers copy them to the WebAssembly memory in chunks.
 */
export class CpuDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory: MemoryMeter;
  readonly #store: CpuStore;
  readonly #pool: ThreadPool;
  readonly #repeatable: (kernel: string) => boolean;
  readonly #garbage: Garbage;

  /**
   * - `build`: the kernels' build, by default the fastest. `simd` gives the same bits on every processor,
   *   relaxed SIMD may not.
   * - `collectsHere`: false if the calling thread must never collect garbage, since its event loop may not
   *   pause.
   * - `handlers`: URL of a module with handlers of further tasks (`GivenHandlers`).
   * - `loads`: name of one of those tasks, of which requests will follow soon. All threads start at once and
   *   load its modules; without it, a thread starts when a task waits for one.
   * - `repeatable`: returns true for a kernel that changes nothing in place. If a thread crashes during such
   *   a task, another thread runs it again.
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
    setCollector(collectGarbage);
    this.#repeatable = repeatable;
    this.#garbage = new Garbage({ limit: collectBytes, here: collectsHere });
    const memory = new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES, shared: true });
    this.#store = new CpuStore(threads, { memory, readSpilled });
    this.memory = this.#store.meter;
    this.info = {
      place,
      kind: 'cpu',
      parallelism: threads,
      inOrder: false,
      wholePasses: false,
      ownMemory: false,
      capacityBytes: this.#store.capacityBytes,
      strideStep: STRIDE_STEP,
      description: `${counted(threads, 'thread')}, WebAssembly ${build}`,
    };
    const workerData: CpuWorkerData = {
      memory: this.#store.memory,
      compiled: compileKernels(build),
      handlers: handlers?.href,
      loads,
    };
    this.#pool = new ThreadPool(
      workerFile(new URL('./worker.js', import.meta.url)),
      threads,
      { ...workerData },
      { crashed: threadEnded, atOnce: loads === undefined ? 1 : threads },
    );
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#store.put(ref, partition);
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#store.allocate(ref, shape);
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    this.#pool.requireOpen();
    for (const [name, ref] of Object.entries(task.inputs))
      if (this.#store.get(ref) === undefined)
        throw this.#absent(`task ${task.kernel}: input ${name} (${partitionKey(ref)})`);
    const request = { kernel: task.kernel, params: task.params, ...this.#store.dataOf(task) };
    const {
      outcome,
      start,
      milliseconds,
      slot: thread,
    } = await this.#runAgain(task.kernel, () =>
      this.#pool.run((slot): CpuRequest => {
        // Collected when the task starts, not when it is sent: memory released in between is collected, too.
        this.#garbage.collectIfDue(this.#store.hostBytes);
        return this.#begun(request, slot);
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

  /** Runs a task, and repeats it if its thread crashed and it is repeatable. */
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

  async fetch(ref: PartitionRef, _wire?: WireRequest, into?: Float32Array): Promise<Partition> {
    this.#pool.requireOpen();
    const found = this.#store.read(ref, into);
    if (found === undefined) throw this.#absent(`partition ${partitionKey(ref)}`);
    return found;
  }

  release(ref: PartitionRef): void {
    this.#garbage.add(this.#store.release(ref));
  }

  async trim(): Promise<void> {
    if (!this.#garbage.collectAll()) return;
    const rest = { kernel: 'rest', params: {}, partitions: {}, matrices: {} };
    // Every thread collects its garbage.
    await this.#pool.runInEach((slot) => this.#begun(rest, slot));
  }

  saveMemory(collectBytes: number): void {
    this.#garbage.lower(collectBytes);
  }

  leaveGarbage(): void {
    this.#garbage.pause();
  }

  #begun(request: Omit<CpuRequest, 'scratch' | 'collection'>, slot: number): CpuRequest {
    return { ...request, scratch: this.#store.scratch[slot], collection: this.#garbage.collection };
  }

  #absent(what: string): Error {
    return new Error(`${what} is not on device ${this.info.place}`);
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.#store.clear();
  }
}

/** Throws UsageError. */
export function checkThreads(threads: number): void {
  if (!Number.isInteger(threads) || threads < 1 || threads > 256)
    throw new UsageError(`workers must be a whole number from 1 to 256, got ${shown(threads)}`);
}

/**
 * Opens several CPU devices and divides the threads among them, at least one for each. Their places are cpu,
 * cpu:1, cpu:2, ... `given`: options as for one device.
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
