import type { PhysicalPlan } from './plan/physical-plan.ts';

/** A report of a run in progress. Plain data: it can be logged, drawn as bars or sent elsewhere. */
export type ProgressEvent =
  | { readonly type: 'phase-start'; readonly phase: string; readonly total?: number; readonly unit?: string }
  /** `done` of the phase's `total` units; at most 20 a second. */
  | {
      readonly type: 'phase-progress';
      readonly phase: string;
      readonly done: number;
      readonly total?: number;
      readonly unit?: string;
    }
  | {
      readonly type: 'phase-end';
      readonly phase: string;
      readonly seconds: number;
      readonly done?: number;
      readonly unit?: string;
    }
  /** The plan of a training run, before it begins. */
  | { readonly type: 'plan'; readonly plan: PhysicalPlan }
  /**
   * One finished iteration. Its seconds do not include evaluation. `trainRmse` and `testRmse` are root mean
   * square errors over known pairs.
   */
  | {
      readonly type: 'iteration';
      /** The algorithm's word for an iteration; default: iteration. */
      readonly called?: 'iteration' | 'epoch';
      readonly iteration: number;
      readonly of: number;
      readonly seconds: number;
      readonly loss: number;
      readonly trainRmse?: number;
      readonly fromSolve?: true;
      readonly testRmse?: number;
      readonly testMae?: number;
      /** Further measures by name. */
      readonly testMetrics?: Readonly<Record<string, number>>;
    }
  /**
   * A message about the run. `code`: its kind, for scripts. `count`: the number of rows or ids that it
   * concerns.
   */
  | { readonly type: 'note'; readonly text: string; readonly code?: string; readonly count?: number }
  | { readonly type: 'warning'; readonly text: string; readonly code?: string; readonly count?: number };

/** A note or a warning. */
export type Message = Extract<ProgressEvent, { readonly text: string }>;

export type EventSink = (event: ProgressEvent) => void;

export const noEvents: EventSink = () => {};

/**
 * A phase of a run. Emits its start event at once, and its progress and end events when these methods are
 * called.
 */
export interface Phase {
  progress(done: number): void;
  /** `done`: total number of completed units. */
  end(done: number): void;
}

/** Fewest milliseconds between two progress events of a phase. */
const PROGRESS_MILLISECONDS = 50;

/** Reports the progress of a phase. */
interface Progress {
  /** Emits an event, unless the last one was less than 50 ms ago. */
  report(done: number): void;
  /** Emits the latest progress if its event was left out. */
  flush(): void;
}

/** Progress of a phase in at most 20 events a second. */
export function progressOf(events: EventSink, phase: string, unit: string, total?: number): Progress {
  let sent = -Infinity;
  let left: number | undefined;
  const send = (done: number) => {
    [sent, left] = [performance.now(), undefined];
    events({ type: 'phase-progress', phase, done, total, unit });
  };
  return {
    report(done) {
      if (performance.now() - sent >= PROGRESS_MILLISECONDS) send(done);
      else left = done;
    },
    flush() {
      if (left !== undefined) send(left);
    },
  };
}

/**
 * Starts a phase. `unit` names what its progress counts ("rows"); `total` is the number of units, if known.
 */
export function startPhase(events: EventSink, phase: string, unit: string, total?: number): Phase {
  const started = performance.now();
  events({ type: 'phase-start', phase, total, unit });
  const { report, flush } = progressOf(events, phase, unit, total);
  return {
    progress: report,
    end(done) {
      flush();
      events({ type: 'phase-end', phase, seconds: (performance.now() - started) / 1000, done, unit });
    },
  };
}
