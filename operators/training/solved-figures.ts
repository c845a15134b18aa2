import type { HostCopy } from './host-copy.ts';
import type { TrainingIteration } from './iteration.ts';
import type { TrainingErrors } from './loss.ts';

/**
 * The exact errors of the last round, from a pass over the ratings, together with the errors that its solve
 * had computed (as `solved`).
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
 * The iterations of the copy from which a run continues. The last one gets back the errors that its solve
 * computed: the errors that it would show had the run not been interrupted.
 */
export function iterationsOf(copy: HostCopy<unknown> | undefined): TrainingIteration[] {
  return (copy?.iterations ?? []).map((one) => {
    const { solved, testMetrics, ...report } = one;
    return solved === undefined
      ? one
      : { ...report, ...solved, fromSolve: true, ...(testMetrics && { testMetrics }) };
  });
}
