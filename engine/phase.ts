import type { EventSink } from './events.ts';

/**
 * A phase of a run: emits the event of its start at once, and those of progress and the end when they are
 * called.
 */
export interface Phase {
  progress(done: number): void;
  /** `done`: units that were done in all. */
  end(done: number): void;
}

/** `unit` names the things that are counted ("rows"); `total` is their number, where it is known. */
export function startPhase(events: EventSink, phase: string, unit: string, total?: number): Phase {
  const started = performance.now();
  events({ type: 'phase-start', phase, total, unit });
  return {
    progress: (done) => events({ type: 'phase-progress', phase, done, total, unit }),
    end: (done) =>
      events({ type: 'phase-end', phase, seconds: (performance.now() - started) / 1000, done, unit }),
  };
}
