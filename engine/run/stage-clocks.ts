import type { RunMetrics } from '../metrics.ts';

interface StageClock {
  /** The time at which its first step started. */
  readonly start: number;
  /** The time at which its first task started; tasks of other stages may have started earlier. */
  worked: number;
  end: number;
}

/**
 * Measures the wall time of each stage, from the start of its first task to the end of its last step. A stage
 * without tasks is timed from its first step.
 */
export class StageClocks {
  readonly #clocks = new Map<string, StageClock>();

  /** Records that a step of the stage starts; returns the time. */
  begin(stage: string): number {
    const start = performance.now();
    if (!this.#clocks.has(stage))
      this.#clocks.set(stage, { start, worked: Number.POSITIVE_INFINITY, end: 0 });
    return start;
  }

  /** Records a task of the given duration that ends now. */
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

  /** The stage that started last. */
  get latest(): string | undefined {
    return [...this.#clocks.keys()].at(-1);
  }

  #of(stage: string): StageClock {
    return this.#clocks.get(stage) as StageClock;
  }
}
