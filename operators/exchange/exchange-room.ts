import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';

/**
 * A stage of a run with exchanges, which divide rows among parts. `bytes`: memory that its tasks need,
 * without the divided rows.
 */
export interface RowStage {
  readonly name: string;
  readonly bytes: number;
}

/** Memory of the process. */
export interface ProcessMemory {
  /** Largest resident size of the process in bytes. */
  readonly budget: number;
  /** Bytes of the process itself, its threads and uncollected garbage. */
  readonly process: number;
  /** Bytes of garbage and fragmentation for each byte of parts. */
  readonly garbage: number;
  /** Called before the tasks of exchanges start. */
  readonly save?: () => void;
}

/** The minimum budget in an error is the estimate times this factor. */
const SPARE = 1.03;

/**
 * Limits the host memory for rows that exchanges have divided among parts; when it is full, further rows are
 * written to files. The limit is the memory budget minus the memory of the process itself and of the tasks of
 * current runs.
 */
export class ExchangeRoom {
  readonly #memory: ProcessMemory;
  readonly #parent: ExchangeRoom | undefined;
  /** Bytes reserved for tasks, and bytes of parts in memory. Both include the leases of this room. */
  #tasks = 0;
  #taken = 0;

  /** Default: no limit. */
  constructor(
    memory: ProcessMemory = { budget: Number.POSITIVE_INFINITY, process: 0, garbage: 0 },
    parent?: ExchangeRoom,
  ) {
    [this.#memory, this.#parent] = [memory, parent];
  }

  get bytes(): number {
    if (this.#parent !== undefined) return this.#parent.bytes;
    const { budget, process, garbage } = this.#memory;
    return Math.max(0, (budget - process - this.#tasks) / (1 + garbage));
  }

  /**
   * A room for one run, which takes its memory from this room. `close` returns everything that the run has
   * reserved.
   */
  lease(): ExchangeRoom {
    return new ExchangeRoom(this.#memory, this);
  }

  /**
   * Reserves memory for the tasks of a run; its stages run one after the other, so a later call for the same run
   * reserves only what is more. Throws CapacityError if the budget is too small for the process and these tasks,
   * even with all parts in files.
   */
  keepFor(stages: readonly RowStage[]): void {
    const { budget, process, save } = this.#memory;
    const { name, bytes } = largest(stages);
    const least = process + bytes;
    if (least > budget)
      throw new CapacityError(
        `the stage "${name}" needs about ${formatBytes(least)} (its tasks ${formatBytes(bytes)}, the process itself ${formatBytes(process)}) but the memory budget is ${formatBytes(budget)}`,
        {
          phase: 'plan',
          advice: `Raise memoryBudget to ${this.leastFor(bytes)} or more, or use fewer workers`,
        },
      );
    save?.();
    this.#keep(Math.max(0, bytes - this.#tasks));
  }

  /** Text for the least budget of tasks that need `bytes` bytes. */
  leastFor(bytes: number): string {
    return formatBytes(Math.ceil(SPARE * (this.#memory.process + bytes)));
  }

  #keep(bytes: number): void {
    this.#tasks += bytes;
    if (this.#parent !== undefined) this.#parent.#keep(bytes);
  }

  /**
   * Text for a printed plan: how much of `bytes` bytes of parts is kept in memory, and why the rest is in
   * files.
   */
  placeOf(bytes: number, stages: readonly RowStage[]): string {
    const about = `about ${formatBytes(bytes)}`;
    const { budget, process, garbage } = this.#memory;
    const { name, bytes: tasks } = largest(stages);
    const room = (budget - process - tasks) / (1 + garbage);
    if (bytes <= room) return `${about} in memory`;
    const taken = `the process takes ${formatBytes(process)} of the budget of ${formatBytes(budget)} and tasks ${formatBytes(tasks)} (${name})`;
    if (room < 0) return `${about}: the budget is too small, since ${taken}`;
    return `${about}: ${formatBytes(room)} in memory and the rest in files, since ${taken}`;
  }

  /** Reserves memory for parts. Returns false if there is too little; then nothing is reserved. */
  take(bytes: number): boolean {
    if (this.#parent === undefined ? this.#taken + bytes > this.bytes : !this.#parent.take(bytes))
      return false;
    this.#taken += bytes;
    return true;
  }

  /** Bytes of parts in memory for which there is no room any more. */
  get excess(): number {
    return this.#parent?.excess ?? Math.max(0, this.#taken - this.bytes);
  }

  give(bytes: number): void {
    this.#taken -= bytes;
    this.#parent?.give(bytes);
  }

  close(): void {
    this.give(this.#taken);
    this.#keep(-this.#tasks);
  }
}

/** Stages run one after the other, so the largest counts. */
function largest(stages: readonly RowStage[]): RowStage {
  return stages.reduce((most, stage) => (stage.bytes > most.bytes ? stage : most), { name: '', bytes: 0 });
}
