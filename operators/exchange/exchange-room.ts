import { CapacityError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';

/** A stage of a pipeline with exchanges, and the memory of its tasks, without the parts of exchanges. */
export interface RowStage {
  readonly name: string;
  readonly bytes: number;
}

/** The memory of the process. */
export interface ProcessMemory {
  /** Bytes that the process may have resident. */
  readonly budget: number;
  /** Bytes of the process itself and its threads, and of garbage that waits for its collection. */
  readonly process: number;
  /** Bytes that wait for their collection, or are lost between pieces, for each byte of parts. */
  readonly garbage: number;
  /** Called before tasks of exchanges begin. */
  readonly save?: () => void;
}

/** Of the least budget, the share that is added since figures are about right. */
const SPARE = 1.03;

/**
 * Most host memory that the parts of all exchanges may take; parts beyond it are written to files. It is the
 * budget less the process itself and the tasks of current runs.
 */
export class ExchangeRoom {
  readonly #memory: ProcessMemory;
  readonly #parent: ExchangeRoom | undefined;
  /** Bytes of tasks, here and of leases. */
  #tasks = 0;
  #taken = 0;

  /** Default: without bound. */
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
   * The same memory for the length of one run, at whose end `close` gives back all that the run has taken.
   */
  lease(): ExchangeRoom {
    return new ExchangeRoom(this.#memory, this);
  }

  /**
   * Keeps memory for the tasks of a run, whose stages follow each other. Throws CapacityError where the
   * budget is less than the process takes with them and with no part in memory.
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

  /** The place of parts of `bytes` together, with the reason where they are not all in memory. */
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

  /** Takes memory; false where there is not so much, and none is taken. */
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

/** Stages follow each other, so the largest counts. */
function largest(stages: readonly RowStage[]): RowStage {
  return stages.reduce((most, stage) => (stage.bytes > most.bytes ? stage : most), { name: '', bytes: 0 });
}
