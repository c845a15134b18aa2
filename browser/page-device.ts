import { type KernelBuild, fastestBuild, kernelBytes } from '../cpu/compile-kernels.ts';
import { STRIDE_STEP, type TaskScope } from '../cpu/handler.ts';
import { type Kernels, loadKernels } from '../cpu/kernels.ts';
import { CpuStore, MAXIMUM_PAGES } from '../cpu/store.ts';
import { scopeOf, type TaskRequest } from '../cpu/task-scope.ts';
import { cancelledBy, UsageError } from '../engine/errors.ts';
import { counted } from '../engine/format.ts';
import { type MatrixShape, type Partition, partitionKey, type PartitionRef } from '../engine/partition.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { Device } from '../engine/run/device.ts';
import type { MemoryMeter } from '../engine/run/memory-meter.ts';
import type { Task, TaskOutcome, TaskResult } from '../engine/task.ts';
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

/** Id of the section of a WebAssembly module that has its imports. */
const IMPORTS = 2;
const MEMORY = 2;
/** Flags of an imported memory: it has a maximum, it is shared. */
const [HAS_MAXIMUM, SHARED] = [1, 2];

/**
 * The kernels as a module that imports a shared memory (`shared`) or an ordinary one: only pages that are
 * cross-origin isolated can share memory among threads. The code is the same for both. Throws UsageError if
 * the browser has no WebAssembly SIMD.
 */
async function compilePageKernels(shared: boolean): Promise<{
  readonly build: KernelBuild;
  readonly compiled: WebAssembly.Module;
}> {
  const build = typeof WebAssembly === 'undefined' ? undefined : fastestBuild();
  if (build === undefined)
    throw new UsageError('this browser has no WebAssembly SIMD, which FactorFlow computes with', {
      phase: 'open',
      advice: 'Use Chrome 91, Firefox 89, Safari 16.4 or newer',
    });
  const bytes = kernelBytes(build);
  return { build, compiled: await WebAssembly.compile(shared ? bytes : withOwnMemory(bytes)) };
}

/**
 * Changes the module's memory import from shared to ordinary: one flag in the section of imports.
 *
 *     section: id, size, count, then for each import: module name, field name, kind, type
 *     type of a memory: flags, initial pages[, maximum pages]
 */
export function withOwnMemory(module: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const numbers = new Numbers(module, 8);
  for (;;) {
    const id = numbers.next();
    const size = numbers.next();
    if (id === IMPORTS) break;
    numbers.skip(size);
  }
  const count = numbers.next();
  numbers.skip(numbers.next());
  numbers.skip(numbers.next());
  const kind = numbers.next();
  // The memory is the only import, as loadKernels passes it.
  if (count !== 1 || kind !== MEMORY || module[numbers.at] !== (HAS_MAXIMUM | SHARED))
    throw new Error('the kernels must import one shared memory and nothing else');
  const own = module.slice();
  own[numbers.at] = HAS_MAXIMUM;
  return own;
}

/** Reads numbers in LEB128. */
class Numbers {
  at: number;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at: number) {
    [this.#bytes, this.at] = [bytes, at];
  }

  next(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#bytes[this.at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  skip(bytes: number): void {
    this.at += bytes;
  }
}
