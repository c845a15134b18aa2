import type { EventSink } from './events.ts';

/** One phase of a run on its way: tells of its start at once, of progress and its end when asked. */
export interface Phase {
  progress(done: number): void;
  /** `done`: what was done in all. */
  end(done: number): void;
}

/** `unit` is what is counted ("rows"); `total` how many there will be, where known. */
export function startPhase(events: EventSink, phase: string, unit: string, total?: number): Phase {
  const started = performance.now();
  events({ type: 'phase-start', phase, total, unit });
  return {
    progress: (done) => events({ type: 'phase-progress', phase, done, total, unit }),
    end: (done) => events({ type: 'phase-end', phase, seconds: (performance.now() - started) / 1000, done, unit }),
  };
}
