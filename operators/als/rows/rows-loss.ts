import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { Device } from '../../../engine/run/device.ts';
import { type Given, runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import type { RatingBlock } from '../../ratings/rating-block.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { valuesOfStage } from '../../tasks/task-values.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { factorsOf, type PlacedFactors, refsOf, type RowRule, shiftsOf, slicesOf } from './solve-rows.ts';

const STAGE = 'rows-loss';

/**
 * The contribution of a block of rows to the loss: the errors of its ratings, in the unit of the given
 * ratings, and its penalty. For implicit data, `observed` is the sum over its observed pairs.
 */
export type RowsLoss =
  | { readonly squared: number; readonly absolute: number; readonly count: number; readonly penalty: number }
  | { readonly observed: number; readonly penalty: number };

/** The contribution of explicit ratings, from the objective of the solve. */
export type SolvedRowsLoss = { readonly squared: number; readonly count: number; readonly penalty: number };

/** Σ r² of a block, in the unit of training. */
export function squaresOf({ values }: RatingBlock): number {
  let squares = 0;
  for (let k = 0; k < values.length; k++) squares += values[k] ** 2;
  return squares;
}

/** A block that is on the device, its rows, and the rows of the fixed side, in the unit of training. */
interface MeasuredRows {
  readonly block: RatingBlock;
  readonly columns: number;
  readonly rows: Float32Array;
  readonly fixed: Float32Array | PlacedFactors;
}

/** `errors`: true to include the errors of the ratings. `unit`: the number by which ratings were divided. */
interface Measuring {
  readonly errors: boolean;
  readonly params: SizedAlsParams;
  readonly rule: RowRule;
  readonly unit: number;
  readonly device: Device;
}

/** Computes the contribution of rows to the loss, or without `errors` their penalty alone. */
export async function lossOfRows(
  rows: MeasuredRows,
  measuring: Measuring,
  ctx: ExecutionContext,
): Promise<RowsLoss | { readonly penalty: number }> {
  const { errors, unit } = measuring;
  const { implicitPrefs, regParam } = measuring.params;
  if (rows.block.rows === 0)
    return implicitPrefs ? { observed: 0, penalty: 0 } : { squared: 0, absolute: 0, count: 0, penalty: 0 };
  const results = await measure(rows, measuring, ctx);
  const sum = (values: readonly { readonly sum: number }[]) => values.reduce((all, one) => all + one.sum, 0);
  if (implicitPrefs)
    return {
      ...(errors ? { observed: sum(valuesOfStage(results, STAGE, 'implicit-error')) } : {}),
      penalty: sum(valuesOfStage(results, STAGE, 'weighted-norm')),
    };
  const penalty = regParam * unit * sum(valuesOfStage(results, STAGE, 'weighted-norm'));
  if (!errors) return { penalty };
  const squares = valuesOfStage(results, STAGE, 'squared-error');
  const total = (name: 'squared' | 'absolute' | 'count') =>
    squares.reduce((all, values) => all + values[name], 0);
  return {
    squared: unit ** 2 * total('squared'),
    absolute: unit * total('absolute'),
    count: total('count'),
    penalty,
  };
}

/** Runs the tasks that compute the loss. */
function measure(
  { block, columns, rows: values, fixed: theta }: MeasuredRows,
  { errors, params: given, rule, device }: Measuring,
  ctx: ExecutionContext,
) {
  const { rank, implicitPrefs, regExponent } = given;
  const [{ place }, ref] = [device.info, refsOf(STAGE)];
  const [rows, unplaced, shifts] = ['rows', 'fixed', 'shifts'].map(ref);
  const fixed = 'ref' in theta ? theta.ref : unplaced;
  const inputs = { block: block.ref, rowFactors: rows, columnFactors: fixed };
  const put: Given[] = [
    [rows, factorsOf(values, rank), place],
    ...('ref' in theta ? [] : [[fixed, factorsOf(theta, rank), place] satisfies Given]),
    ...(implicitPrefs ? [[shifts, shiftsOf(block, columns, rule), place] satisfies Given] : []),
  ];
  const steps = new StepList(contracts);
  const slices = slicesOf(block, device);
  const add = (task: Parameters<typeof addSliced>[3]) => addSliced(steps, STAGE, place, task, slices);
  if (implicitPrefs) {
    const params = { rank, ...implicitWeights(given) };
    if (errors) add({ kernel: 'implicit-error', inputs, outputs: {}, params });
    add({ kernel: 'weighted-norm', inputs: { shifts, factors: rows }, outputs: {}, params: { rank } });
  } else {
    const params = { rank, ...(regExponent === 1 ? {} : { exponent: regExponent }) };
    if (errors) add({ kernel: 'squared-error', inputs, outputs: {}, params: { rank } });
    add({ kernel: 'weighted-norm', inputs: { block: block.ref, factors: rows }, outputs: {}, params });
  }
  steps.free(
    STAGE,
    place,
    put.map(([ref]) => ref),
  );
  return runSteps(steps.steps, ctx, { given: put });
}
