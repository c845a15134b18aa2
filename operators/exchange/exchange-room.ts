import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';

/** A stage of a pipeline with exchanges, and the memory of its tasks, excluding the parts of exchanges. */
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
 * Limit of host memory for the parts of all exchanges; further parts are written to files. The limit is the
 * budget minus the process itself and the tasks of current runs.
 */
export class ExchangeRoom {
  readonly #memory: ProcessMemory;
  readonly #parent: ExchangeRoom | undefined;
  /** Bytes of tasks and of leases. */
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

  /** Memory for one run, taken from the same limit. `close` returns everything that the run has reserved. */
  lease(): ExchangeRoom {
    return new ExchangeRoom(this.#memory, this);
  }

  /**
   * Reserves memory for the tasks of a run; its stages run one after the other. Throws CapacityError if the
   * budget is too small for the process and these tasks, even with all parts in files.
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
          advice: `Raise memoryBudget to ${formatBytes(Math.ceil(SPARE * least))} or more, or use fewer workers`,
        },
      );
    save?.();
    this.#keep(bytes);
  }

  #keep(bytes: number): void {
    this.#tasks += bytes;
    if (this.#parent !== undefined) this.#parent.#keep(bytes);
  }

  /** Place of parts with `bytes` bytes together, with the reason if not all are in memory. */
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

  /** Reserves memory; false if there is too little, and then nothing is reserved. */
  take(bytes: number): boolean {
    if (this.#parent === undefined ? this.#taken + bytes > this.bytes : !this.#parent.take(bytes))
      return false;
    this.#taken += bytes;
    return true;
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
