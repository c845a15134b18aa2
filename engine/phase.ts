import type { EventSink } from './events.ts';

/**
 * A phase of a run. Emits its start event at once, and its progress and end events when these methods are
 * called.
 */
export interface Phase {
  progress(done: number): void;
  /** `done`: total number of completed units. */
  end(done: number): void;
}

/**
 * Starts a phase. `unit` names what its progress counts ("rows"); `total` is the number of units, if known.
 */
export function startPhase(events: EventSink, phase: string, unit: string, total?: number): Phase {
  const started = performance.now();
  events({ type: 'phase-start', phase, total, unit });
  return {
    progress: (done) => events({ type: 'phase-progress', phase, done, total, unit }),
    end: (done) =>
      events({ type: 'phase-end', phase, seconds: (performance.now() - started) / 1000, done, unit }),
  };
}
