import type { Place } from '../../plan/place.ts';

/** The parts that a stage processes in order: the place of each, its steps, and the steps after the last. */
export interface StageParts {
  readonly at: readonly Place[];
  run(part: number): void;
  /** Set for a stage that repeats. */
  readonly times?: number;
  end?(): void;
}
