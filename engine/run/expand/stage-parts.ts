import type { Place } from '../../plan/place.ts';

/**
 * The parts that a stage processes, in order: the place of each part, and functions that add a part's steps
 * and the steps after the last part.
 */
export interface StageParts {
  readonly at: readonly Place[];
  run(part: number): void;
  /** Set for a stage that repeats. */
  readonly times?: number;
  /** True for a stage of a pipeline in which the parts of all places are processed together. */
  readonly together?: boolean;
  end?(): void;
}
