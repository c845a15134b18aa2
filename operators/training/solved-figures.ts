import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';

/** Errors by a pass over the ratings, together with the errors computed by the solve of the last round. */
export function withSolved<Errors extends TrainingErrors>(
  errors: Errors,
  told: TrainingErrors | undefined,
): Errors {
  return told?.fromSolve && !errors.fromSolve
    ? {
        ...errors,
        solved: { loss: told.loss, ...(told.trainRmse === undefined ? {} : { trainRmse: told.trainRmse }) },
      }
    : errors;
}

/**
 * The iterations of a copy that a run continues from. The last one gets the errors it would have if
 * iterations followed it.
 */
export function iterationsOf(copy: HostCopy<unknown> | undefined): TrainingIteration[] {
  return (copy?.iterations ?? []).map((one) => {
    const { solved, testMetrics, ...report } = one;
    return solved === undefined
      ? one
      : { ...report, ...solved, fromSolve: true, ...(testMetrics && { testMetrics }) };
  });
}
