import type { KernelBuild } from '../cpu/compile-kernels.ts';
import { type MatrixView, STRIDE_STEP, type TaskScope } from '../cpu/handler.ts';
import { type Kernels, loadKernels } from '../cpu/kernels.ts';
import { CpuStore, MAXIMUM_PAGES } from '../cpu/store.ts';
import { cancelledBy } from '../engine/errors.ts';
import {
  type MatrixShape,
  type Partition,
  partitionKey,
  type PartitionRef,
  pieceOf,
} from '../engine/partition.ts';
import type { DeviceInfo } from '../engine/plan/device-info.ts';
import type { Device } from '../engine/run/device.ts';
import type { MemoryMeter } from '../engine/run/memory-meter.ts';
import type { Task, TaskOutcome, TaskResult } from '../engine/task.ts';

/** Milliseconds of tasks after which the thread's other events run: messages, input, a cancellation. */
const MOST_AT_ONCE = 100;

/** Handlers of tasks by name; each takes the parameters of its own task. */
export type PageTasks = Readonly<Record<string, (scope: TaskScope<never>) => TaskOutcome>>;

/** The compiled kernels of `compilePageKernels`. */
interface Compiled {
  readonly build: KernelBuild;
  readonly compiled: WebAssembly.Module;
}

/**
 * The CPU of a page: runs tasks in the thread that made it, one after the other, by the handlers and kernels
 * of Node's CPU device. Its memory is not shared, so a page need not be cross-origin isolated.
 */
export class PageDevice implements Device {
  readonly info: DeviceInfo;
  readonly memory: MemoryMeter;
  readonly #store: CpuStore;
  readonly #kernels: Kernels;
  readonly #tasks: PageTasks;
  /** Milliseconds of tasks since other events ran. */
  #busy = 0;

  constructor({ build, compiled }: Compiled, tasks: PageTasks) {
    this.#tasks = tasks;
    const memory = new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES });
    this.#store = new CpuStore(1, { memory });
    this.#kernels = loadKernels(memory, compiled);
    this.memory = this.#store.meter;
    this.info = {
      place: 'cpu',
      kind: 'cpu',
      parallelism: 1,
      inOrder: false,
      wholePasses: false,
      ownMemory: false,
      capacityBytes: this.#store.capacityBytes,
      strideStep: STRIDE_STEP,
      description: `the page's thread, WebAssembly ${build}`,
    };
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#store.put(ref, partition);
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#store.allocate(ref, shape);
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    if (this.#busy > MOST_AT_ONCE) await this.#pause();
    if (signal?.aborted) throw cancelledBy(signal);
    const handler = this.#tasks[task.kernel] as ((scope: TaskScope) => TaskOutcome) | undefined;
    if (handler === undefined) throw new Error(`the page has no handler of the task ${task.kernel}`);
    const start = performance.now();
    const outcome = handler(this.#scopeOf(task, signal));
    if (signal?.aborted) throw cancelledBy(signal);
    for (const [name, partition] of Object.entries(outcome.partitions ?? {})) {
      const ref = task.outputs[name];
      if (ref === undefined)
        throw new Error(`task ${task.kernel} gave an output ${name} that it does not name`);
      this.put(ref, partition);
    }
    const { rows, bytesUp = 0, bytesDown = 0, values = {} } = outcome;
    const milliseconds = performance.now() - start;
    this.#busy += milliseconds;
    return { metrics: { rows, bytesUp, bytesDown, milliseconds }, values };
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
    this.#store.clear();
  }

  async #pause(): Promise<void> {
    this.#busy = 0;
    await new Promise((resolve) => setTimeout(resolve));
  }

  #scopeOf(task: Task, signal: AbortSignal | undefined): TaskScope {
    const partitions: Record<string, Partition> = {};
    const matrices: Record<string, MatrixView> = {};
    for (const [name, ref] of Object.entries({ ...task.inputs, ...task.outputs })) {
      const stored = this.#store.get(ref);
      if (stored === undefined) {
        if (name in task.inputs)
          throw this.#absent(`task ${task.kernel}: input ${name} (${partitionKey(ref)})`);
      } else if ('host' in stored) partitions[name] = stored.host;
      else matrices[name] = stored.matrix;
    }
    const named = <T>(from: Readonly<Record<string, T>>, kind: string, name: string): T => {
      if (name in from) return from[name];
      throw new Error(`task ${task.kernel}: no ${kind} named ${name}`);
    };
    return {
      params: task.params,
      partition: (name) => named(partitions, 'partition', name),
      piece: (name, piece) => pieceOf(named(partitions, 'partition', name), piece),
      hasInput: (name) => name in partitions || name in matrices,
      hasMatrix: (name) => name in matrices,
      matrix: (name) => named(matrices, 'matrix', name),
      scratch: this.#store.scratch[0],
      memory: this.#store.memory,
      kernels: this.#kernels,
      cancelled: () => signal?.aborted === true,
    };
  }

  #absent(what: string): Error {
    return new Error(`${what} is not on device ${this.info.place}`);
  }
}
