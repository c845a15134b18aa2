import type { Place } from './plan/place.ts';
import type { Spans } from './trace/spans.ts';
import type { TaskMetrics } from './task.ts';
import type { Tracer } from './trace/trace.ts';

/** The work that one operator or stage of a run has done so far. */
export interface Measure {
  /** Number of batches of an operator, or tasks of a stage. */
  readonly runs: number;
  readonly rows: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /**
   * Time summed over threads. For an operator, the time of its inputs is not included; for a stage, only time
   * inside its tasks is.
   */
  readonly milliseconds: number;
  /** Wall time from the start of the stage's first task to the end of its last (0 for operators). */
  readonly wallMilliseconds: number;
}

const zero: Measure = { runs: 0, rows: 0, bytesUp: 0, bytesDown: 0, milliseconds: 0, wallMilliseconds: 0 };

const NO_SPAN: Disposable = { [Symbol.dispose]: () => {} };

/** Collects measures by name, in the order in which names first appear. */
export class RunMetrics {
  readonly #measures = new Map<string, Measure>();
  readonly #until = new Map<string, number>();
  readonly #peaks = new Map<Place, number>();
  readonly #spans: Spans | undefined;

  /** `spans`: the record of the whole process, if one is kept. */
  constructor(spans?: Spans) {
    this.#spans = spans;
  }

  /** Receives every span if a trace is written. */
  get tracer(): Tracer | undefined {
    return this.#spans?.tracer;
  }

  add(name: string, task: Partial<TaskMetrics>, runs = 1): void {
    const old = this.#measures.get(name) ?? zero;
    this.#measures.set(name, {
      runs: old.runs + runs,
      rows: old.rows + (task.rows ?? 0),
      bytesUp: old.bytesUp + (task.bytesUp ?? 0),
      bytesDown: old.bytesDown + (task.bytesDown ?? 0),
      milliseconds: old.milliseconds + (task.milliseconds ?? 0),
      wallMilliseconds: old.wallMilliseconds,
    });
    if (task.bytesUp || task.bytesDown) this.#spans?.moved(task.bytesUp ?? 0, task.bytesDown ?? 0);
  }

  /** Counts a stage that reads files, from `start` until now, as one run. */
  addStage(name: string, start: number, rows: number): void {
    const end = performance.now();
    this.add(name, { rows, milliseconds: end - start });
    this.tracer?.span({ place: 'files', row: 'stages', name, start, end, args: { rows } });
  }

  /**
   * Adds wall time from `start` to `end`, without time that an earlier span has counted: spans of step lists
   * that run concurrently overlap.
   */
  addSpan(name: string, start: number, end: number): void {
    const until = this.#until.get(name) ?? 0;
    this.addWall(name, Math.max(0, end - Math.max(start, until)));
    this.#until.set(name, Math.max(end, until));
  }

  /** Starts a phase of the run in the record of spans; it ends when disposed. */
  begin(phase: string): Disposable {
    return this.#spans?.begin(phase) ?? NO_SPAN;
  }

  /** Runs `work` as a phase of the run. */
  time<Result>(phase: string, work: () => Result): Result {
    using _ = this.begin(phase);
    return work();
  }

  addWall(name: string, milliseconds: number): void {
    const old = this.#measures.get(name) ?? zero;
    this.#measures.set(name, { ...old, wallMilliseconds: old.wallMilliseconds + milliseconds });
  }

  /** Records the peak of the bytes allocated at a place. */
  addPeak(place: Place, bytes: number): void {
    this.#peaks.set(place, Math.max(this.#peaks.get(place) ?? 0, bytes));
  }

  /** The peaks of memory by place. */
  get peaks(): Readonly<Record<Place, number>> {
    return Object.fromEntries(this.#peaks);
  }

  get(name: string): Measure | undefined {
    return this.#measures.get(name);
  }

  entries(): IterableIterator<[string, Measure]> {
    return this.#measures.entries();
  }
}
