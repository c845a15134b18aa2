import type { RunMetrics } from '../metrics.ts';

interface StageClock {
  /** The moment at which its first step was begun. */
  readonly start: number;
  /** The moment at which the first of its tasks began; tasks of other stages may have begun earlier. */
  worked: number;
  end: number;
}

/**
 * The wall time of each stage: from its first task, or its first step if it has no tasks, to its last end.
 */
export class StageClocks {
  readonly #clocks = new Map<string, StageClock>();

  /** Notes that a step of the stage begins; returns the moment. */
  begin(stage: string): number {
    const start = performance.now();
    if (!this.#clocks.has(stage))
      this.#clocks.set(stage, { start, worked: Number.POSITIVE_INFINITY, end: 0 });
    return start;
  }

  /** A task that took so long ends now. */
  worked(stage: string, milliseconds: number): void {
    const clock = this.#of(stage);
    clock.worked = Math.min(clock.worked, performance.now() - milliseconds);
  }

  end(stage: string): void {
    this.#of(stage).end = performance.now();
  }

  addTo(metrics: RunMetrics): void {
    for (const [stage, { start, worked, end }] of this.#clocks)
      if (end > 0) metrics.addSpan(stage, Number.isFinite(worked) ? Math.max(start, worked) : start, end);
  }

  /** The stage that began last. */
  get latest(): string | undefined {
    return [...this.#clocks.keys()].at(-1);
  }

  #of(stage: string): StageClock {
    return this.#clocks.get(stage) as StageClock;
  }
}
