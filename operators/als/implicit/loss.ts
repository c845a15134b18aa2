import type { StepResults } from '../../../engine/run/run-steps.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import type { TrainingErrors } from '../../training/loss.ts';
import type { SizedAlsParams } from './sized-params.ts';
import { implicitNames, implicitStages } from './stages.ts';
import { MOST_CANCELLED } from '../solved-loss.ts';
import { unobservedWeightOf } from './weights.ts';

/**
 * J computed from the objective of the users, which includes all pairs and the users' penalty. `targets`:
 * the term for the observed pairs that this objective lacks, see positiveTargets. Undefined if cancellation
 * leaves too few digits.
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
 * J of implicit data in float64: Σ over all pairs of c (p - x_uᵀθ_v)² + Σ shift_u ‖x_u‖² + Σ shift_v ‖θ_v‖².
 * `prefix`: prefix of the names of the data sets. Each Gram matrix contains the factor w₀, the weight of
 * unobserved pairs, so the trace of their product contains w₀².
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
