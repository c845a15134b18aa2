import type { Place } from '../../plan/place.ts';

/**
 * The parts that a stage goes through one behind the other: the place of each, its steps, and those behind
 * the last.
 */
export interface StageParts {
  readonly at: readonly Place[];
  run(part: number): void;
  /** Of a stage that repeats. */
  readonly times?: number;
  end?(): void;
}
