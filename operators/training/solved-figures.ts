import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';

/**
 * Errors from a pass over the ratings, combined with the errors that the solve of the last round computed.
 */
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
 * The iterations of a copy from which a run continues. The errors of the last one are replaced by those that
 * it would have if other iterations had followed it.
 */
export function iterationsOf(copy: HostCopy<unknown> | undefined): TrainingIteration[] {
  return (copy?.iterations ?? []).map((one) => {
    const { solved, testMetrics, ...report } = one;
    return solved === undefined
      ? one
      : { ...report, ...solved, fromSolve: true, ...(testMetrics && { testMetrics }) };
  });
}
