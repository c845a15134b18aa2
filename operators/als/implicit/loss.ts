import type { StepResults } from '../../../engine/run/run-steps.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import type { TrainingErrors } from '../../training/loss.ts';
import type { SizedAlsParams } from './sized-params.ts';
import { implicitNames, implicitStages } from './stages.ts';
import { MOST_CANCELLED } from '../solved-loss.ts';
import { unobservedWeightOf } from './weights.ts';

/**
 * Computes the loss of implicit data from the objective of the users, which is a result of solving them. The
 * objective covers all pairs, with or without a rating, and the users' penalty. `targets`: the constant that
 * it lacks, see positiveTargets. Returns undefined if cancellation leaves too few digits.
 */
export function implicitErrorsOfSolve(
  measured: StepResults,
  objective: number,
  targets: number,
): TrainingErrors | undefined {
  const loss =
    targets +
    objective +
    valuesOfStage(measured, implicitStages.items, 'weighted-norm').reduce(
      (sum, values) => sum + values.sum,
      0,
    );
  return loss * MOST_CANCELLED > targets ? { loss, fromSolve: true } : undefined;
}

/**
 * The loss of implicit data, computed in float64: Σ over all pairs of c (p - x_uᵀθ_v)² + Σ shift_u ‖x_u‖² + Σ
 * shift_v ‖θ_v‖², where c is the weight of a pair, and p is 1 for a positive rating, else 0. Σ (x_uᵀθ_v)²
 * over all pairs is the trace of the product of both Gram matrices. Each Gram matrix contains the factor w₀,
 * the weight of pairs without a rating, so the trace is divided by w₀. `prefix`: prefix of the names of the
 * data sets.
 */
export function implicitErrors(
  measured: StepResults,
  prefix: string,
  params: SizedAlsParams,
): TrainingErrors {
  const [users, items] = (['users', 'items'] as const).map(
    (side) => measured.partitions(`${prefix}/${implicitNames(side).gram}`)[0].columns.values as Float32Array,
  );
  const { rank } = params;
  let trace = 0;
  for (let k = 0; k < rank * rank; k++) trace += users[k] * items[k];
  const observed = valuesOfStage(measured, implicitStages.error, 'implicit-error').reduce(
    (sum, values) => sum + values.sum,
    0,
  );
  const penalty = (['users', 'items'] as const).reduce(
    (all, side) =>
      valuesOfStage(measured, implicitStages[side], 'weighted-norm').reduce(
        (sum, values) => sum + values.sum,
        all,
      ),
    0,
  );
  return { loss: trace / unobservedWeightOf(params) + observed + penalty };
}
