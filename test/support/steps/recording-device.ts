import { vi } from 'vitest';
import { CancelledError, DeviceLostError } from '../../../engine/errors.ts';
import type { Device, WireRequest } from '../../../engine/run/device.ts';
import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { JsonObject } from '../../../engine/json.ts';
import {
  type MatrixShape,
  type Partition,
  partitionKey,
  type PartitionRef,
  sharedArray,
} from '../../../engine/partition.ts';
import { HostMemory } from '../../../engine/run/host-memory.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { Task, TaskResult } from '../../../engine/task.ts';
import { madeBy, valuesOf } from './plausible.ts';
import { RandomTurns } from './turns.ts';

export type Verb = 'put' | 'allocate' | 'run' | 'fetch' | 'release';

/** One verb, as it was called. */
export interface Recorded {
  readonly at: string;
  readonly verb: Verb;
  readonly text: string;
  /** Of an allocation, or of a matrix that was put to a device: what it takes there. */
  readonly bytes?: number;
}

/** The names of partitions without the prefix that differs between runs: als#7/users.1@2 is users.1@2. */
export function shortName({ name, partition, version }: PartitionRef): string {
  return `${name.replace(/^[^/]*#\d+\//, '').replace(/#\d+/, '')}.${partition}@${version}`;
}

export interface RecordingOptions {
  /** Ends `run` and `fetch` in an order of its own; default: at once. */
  readonly turns?: RandomTurns;
  /**
   * Called before each verb is carried out, with its number on this device, from 0; may throw. A promise is
   * waited for (`run`, `fetch`).
   */
  readonly before?: (n: number, verb: Verb, task?: Task) => void | Promise<void>;
  readonly values?: (task: Task) => JsonObject;
  /** Set once the device is lost: every verb that can fail then fails. */
  readonly lostAt?: number;
}

interface Held {
  readonly partition?: Partition;
  readonly shape?: MatrixShape;
  readonly bytes: number;
}

/**
 * A device that computes nothing: it notes its calls and the partitions that it would hold. A task without
 * one of its inputs fails, as on any device.
 */
export class RecordingDevice implements Device {
  readonly info: DeviceInfo;
  readonly log: Recorded[];
  readonly #options: RecordingOptions;
  readonly #held = new Map<string, Held>();
  /** Partitions that tasks at work read or write, where tasks end in any order. */
  readonly #used = new Map<string, number>();
  /** Verbs so far. */
  verbs = 0;
  /** Tasks that have begun and not ended. */
  running = 0;
  bytes = 0;
  peak = 0;

  constructor(info: DeviceInfo, log: Recorded[] = [], options: RecordingOptions = {}) {
    this.info = info;
    this.log = log;
    this.#options = options;
  }

  /** The partitions that are alive. */
  get held(): string[] {
    return [...this.#held.keys()];
  }

  put(ref: PartitionRef, partition: Partition): void {
    this.#verb('put', false);
    const { columns, rows, layout } = partition;
    const matrix = layout === 'factors';
    const own = matrix ? rows * this.#stride(rows === 0 ? 0 : columns.values.length / rows) * 4 : 0;
    this.#note('put', shortName(ref), matrix ? own : undefined);
    this.#hold(ref, { partition, bytes: own });
  }

  allocate(ref: PartitionRef, shape: MatrixShape): void {
    this.#verb('allocate', false);
    const bytes = 4 * shape.rows * shape.stride;
    this.#note('allocate', shortName(ref), bytes);
    this.#hold(ref, { shape, bytes });
  }

  async run(task: Task, signal?: AbortSignal): Promise<TaskResult> {
    this.#note('run', textOf(task));
    const waits = this.#verb('run', true, task);
    for (const ref of Object.values(task.inputs))
      if (!this.#held.has(partitionKey(ref)))
        throw new Error(`${task.kernel} at ${this.info.place}: ${partitionKey(ref)} is not there`);
    const refs = [...Object.values(task.inputs), ...Object.values(task.outputs)];
    const made = madeBy(task);
    this.running++;
    this.#use(refs, 1);
    try {
      await waits;
      await this.#turn();
      if (signal?.aborted) throw new CancelledError();
    } finally {
      this.running--;
      this.#use(refs, -1);
    }
    for (const [output, ref] of Object.entries(task.outputs))
      if (!this.#held.has(partitionKey(ref)) && made[output])
        this.#hold(ref, { partition: made[output], bytes: 0 });
    const values = { ...valuesOf(task), ...this.#options.values?.(task) };
    return { metrics: { rows: 1, bytesUp: 0, bytesDown: 0, milliseconds: 0 }, values };
  }

  async fetch(ref: PartitionRef, wire?: WireRequest): Promise<Partition> {
    this.#note('fetch', shortName(ref));
    const waits = this.#verb('fetch', true);
    const found = this.#held.get(partitionKey(ref));
    if (found === undefined)
      throw new Error(`fetch at ${this.info.place}: ${partitionKey(ref)} is not there`);
    await waits;
    await this.#turn();
    const partition = contentOf(found);
    // As a GPU gives rows for another.
    if (wire && this.info.ownMemory && partition.layout === 'factors')
      return {
        layout: 'wire-rows',
        rows: partition.rows,
        columns: { values: new Float32Array(wire.take(found.bytes) as SharedArrayBuffer) },
      };
    return partition;
  }

  release(ref: PartitionRef): void {
    this.verbs++;
    const key = partitionKey(ref);
    this.#note('release', shortName(ref));
    if ((this.#used.get(key) ?? 0) > 0)
      throw new Error(`${key} was released at ${this.info.place} while a task used it`);
    this.bytes -= this.#held.get(key)?.bytes ?? 0;
    this.#held.delete(key);
  }

  async trim(): Promise<void> {}
  async close(): Promise<void> {}

  #verb(verb: Verb, fails: boolean, task?: Task): void | Promise<void> {
    const n = this.verbs++;
    if (fails && this.#options.lostAt !== undefined && n >= this.#options.lostAt)
      throw new DeviceLostError(`the device ${this.info.place} was lost`);
    return this.#options.before?.(n, verb, task);
  }

  #use(refs: readonly PartitionRef[], by: 1 | -1): void {
    if (this.info.inOrder) return;
    for (const ref of refs) this.#used.set(partitionKey(ref), (this.#used.get(partitionKey(ref)) ?? 0) + by);
  }

  async #turn(): Promise<void> {
    await this.#options.turns?.wait(this.info.place, this.info.inOrder);
  }

  #stride(columns: number): number {
    return Math.ceil(columns / this.info.strideStep) * this.info.strideStep;
  }

  #note(verb: Verb, text: string, bytes?: number): void {
    this.log.push({ at: this.info.place, verb, text, ...(bytes === undefined ? {} : { bytes }) });
  }

  #hold(ref: PartitionRef, held: Held): void {
    this.bytes += held.bytes - (this.#held.get(partitionKey(ref))?.bytes ?? 0);
    this.#held.set(partitionKey(ref), held);
    this.peak = Math.max(this.peak, this.bytes);
  }
}

/** "update [0, 8) block fixed > factors". */
function textOf({ kernel, params: { from, to }, inputs, outputs }: Task): string {
  const names = (refs: Task['inputs']) => Object.values(refs).map(shortName).join(' ');
  const slice = typeof from === 'number' && typeof to === 'number' ? ` [${from}, ${to})` : '';
  return `${kernel}${slice} ${names(inputs)} > ${names(outputs)}`.trimEnd();
}

/** A partition that was put or made, or zeros of the shape that was allocated. */
function contentOf({ partition, shape }: Held): Partition {
  if (partition !== undefined) return partition;
  const { layout = 'factors', rows = 0, columns = 0 }: Partial<MatrixShape> = shape ?? {};
  return { layout, rows, columns: { values: sharedArray(Float32Array, rows * columns) } };
}

/** Notes the calls of any host memory. Gives the function that ends this. */
export function recordHostMemory(log: Recorded[]): () => void {
  const { put, release } = HostMemory.prototype;
  const puts = vi.spyOn(HostMemory.prototype, 'put').mockImplementation(function (
    this: HostMemory,
    ref,
    partition,
  ) {
    log.push({ at: HOST, verb: 'put', text: shortName(ref) });
    put.call(this, ref, partition);
  });
  const releases = vi.spyOn(HostMemory.prototype, 'release').mockImplementation(function (
    this: HostMemory,
    ref,
  ) {
    log.push({ at: HOST, verb: 'release', text: shortName(ref) });
    release.call(this, ref);
  });
  return () => {
    puts.mockRestore();
    releases.mockRestore();
  };
}
