import type { StepResults } from '../../engine/run/run-steps.ts';
import type { KernelName, ValuesOf } from './tasks.ts';

/** The values that a stage's tasks of one kernel returned, in the order of steps, then of slices. */
export function valuesOfStage<K extends KernelName>(
  results: Pick<StepResults, 'of'>,
  stage: string,
  kernel: K,
): readonly ValuesOf<K>[] {
  return results.of(stage, kernel) as readonly ValuesOf<K>[];
}
