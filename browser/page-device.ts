import type { KernelBuild } from '../cpu/compile-kernels.ts';
import { STRIDE_STEP, type TaskScope } from '../cpu/handler.ts';
import { type Kernels, loadKernels } from '../cpu/kernels.ts';
import { CpuStore, MAXIMUM_PAGES } from '../cpu/store.ts';
import { scopeOf, type TaskRequest } from '../cpu/task-scope.ts';
import { cancelledBy } from '../engine/errors.ts';
import { counted } from '../engine/format.ts';
import { type MatrixShape, type Partition, partitionKey, type PartitionRef } from '../engine/partition.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { Device } from '../engine/run/device.ts';
import type { MemoryMeter } from '../engine/run/memory-meter.ts';
import type { Task, TaskOutcome, TaskResult } from '../engine/task.ts';
import { compilePageKernels } from './kernels.ts';
import { PageThreads } from './page-threads.ts';

/** Milliseconds of tasks after which the thread's other events run: messages, input, a cancellation. */
const MOST_AT_ONCE = 100;

/** Handlers of tasks by name; each takes the parameters of its own task. */
export type PageTasks = Readonly<Record<string, (scope: TaskScope<never>) => TaskOutcome>>;

/** The compiled kernels of `compilePageKernels`. */
interface Compiled {
  readonly build: KernelBuild;
  readonly compiled: WebAssembly.Module;
}

function ownMemory(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES });
}

/** Undefined if the browser does not give the page shared memory. */
function sharedMemory(): WebAssembly.Memory | undefined {
  try {
    return new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES, shared: true });
  } catch {
    return undefined;
  }
}

/**
 * The CPU of a page, with the handlers and kernels of Node's CPU device. With one thread it runs tasks one
 * after the other in the thread that made it, and its memory is not shared, so the page need not be
 * cross-origin isolated. With more threads it runs tasks in web workers that share its memory.
 */
export class PageDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory: MemoryMeter;
  readonly #store: CpuStore;
  readonly #kernels: Kernels;
  readonly #tasks: PageTasks;
  #threads: PageThreads | undefined;
  /** Milliseconds of tasks since other events ran. */
  #busy = 0;

  private constructor(
    { build, compiled }: Compiled,
    memory: WebAssembly.Memory,
    tasks: PageTasks,
    { count, threads }: { readonly count: number; readonly threads?: PageThreads | undefined },
  ) {
    this.#tasks = tasks;
    this.#threads = threads;
    this.#store = new CpuStore(count, { memory });
    this.#kernels = loadKernels(memory, compiled);
    this.memory = this.#store.meter;
    this.info = {
      place: 'cpu',
      kind: 'cpu',
      parallelism: count,
      inOrder: false,
      wholePasses: false,
      ownMemory: false,
      capacityBytes: this.#store.capacityBytes,
      strideStep: STRIDE_STEP,
      description: `${threads ? counted(count, 'thread') : "the page's thread"}, WebAssembly ${build}`,
    };
  }

  /**
   * Opens the device. `threads`: the number of threads for tasks. It is 1 where the page has no shared
   * memory, since it is not cross-origin isolated, or where the workers do not start. Throws UsageError if
   * the browser has no WebAssembly SIMD.
   */
  static async open(tasks: PageTasks, threads: number): Promise<PageDevice> {
    const memory = threads > 1 ? sharedMemory() : undefined;
    const kernels = await compilePageKernels(memory !== undefined);
    if (memory === undefined) return new PageDevice(kernels, ownMemory(), tasks, { count: 1 });
    const opened = await PageThreads.open(threads, { memory, compiled: kernels.compiled });
    return new PageDevice(kernels, memory, tasks, { count: opened ? threads : 1, threads: opened });
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#store.put(ref, partition);
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#store.allocate(ref, shape);
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    const start = performance.now();
    const outcome = this.#threads
      ? await this.#threads.run((slot) => this.#requestOf(task, slot), signal)
      : await this.#runHere(task, signal);
    if (signal?.aborted) throw cancelledBy(signal);
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined)
        throw new Error(`task ${task.kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    const { rows, bytesUp = 0, bytesDown = 0, values = {} } = outcome;
    const milliseconds = performance.now() - start;
    return { metrics: { rows, bytesUp, bytesDown, milliseconds }, values };
  }

  async #runHere(task: Task, signal: AbortSignal | undefined): Promise<TaskOutcome> {
    if (this.#busy > MOST_AT_ONCE) await this.#pause();
    if (signal?.aborted) throw cancelledBy(signal);
    const handler = this.#tasks[task.kernel] as ((scope: TaskScope) => TaskOutcome) | undefined;
    if (handler === undefined) throw new Error(`the page has no handler of the task ${task.kernel}`);
    const start = performance.now();
    const cancelled = () => signal?.aborted === true;
    const given = { memory: this.#store.memory, kernels: this.#kernels, cancelled };
    const outcome = handler(scopeOf(this.#requestOf(task, 0), given));
    this.#busy += performance.now() - start;
    return outcome;
  }

  /** Ends the threads; later tasks run in the page's own thread. */
  endThreads(): void {
    this.#threads?.close();
    this.#threads = undefined;
  }

  async fetch(ref: PartitionRef): Promise<Partition> {
    const found = this.#store.read(ref);
    if (found === undefined) throw this.#absent(`partition ${partitionKey(ref)}`);
    return found;
  }

  release(ref: PartitionRef): void {
    this.#store.release(ref);
  }

  async trim(): Promise<void> {}

  async close(): Promise<void> {
    this.endThreads();
    this.#store.clear();
  }

  async #pause(): Promise<void> {
    this.#busy = 0;
    await new Promise((resolve) => setTimeout(resolve));
  }

  #requestOf(task: Task, slot: number): TaskRequest {
    for (const [name, ref] of Object.entries(task.inputs))
      if (this.#store.get(ref) === undefined)
        throw this.#absent(`task ${task.kernel}: input ${name} (${partitionKey(ref)})`);
    const { kernel, params } = task;
    return { kernel, params, ...this.#store.dataOf(task), scratch: this.#store.scratch[slot] };
  }

  #absent(what: string): Error {
    return new Error(`${what} is not on device ${this.info.place}`);
  }
}
