import { sharedArray } from '../../../engine/partition.ts';
import type { RatingBlock } from '../../ratings/ratings.ts';
import type { ImplicitWeights } from '../../tasks/implicit-tasks.ts';
import type { SizedAlsParams } from '../als-params.ts';
import type { PositiveCounts } from './effective-ratings.ts';

type WeightParams = Pick<SizedAlsParams, 'alpha' | 'unobservedWeight'>;
type ShiftParams = Pick<SizedAlsParams, 'regParam' | 'regExponent' | 'unobservedWeight'>;

/** The weight of a pair without a rating. Gram matrices are multiplied by it. */
export function unobservedWeightOf({
  unobservedWeight = 1,
}: Pick<SizedAlsParams, 'unobservedWeight'>): number {
  return unobservedWeight;
}

/**
 * The parameters by which tasks weight ratings. Without `unobservedWeight` a pair has the confidence 1 + α|r|
 * (Spark; Hu, Koren and Volinsky 2008), so a rating replaces an unobserved zero of weight 1. With it, the
 * zero stays, and the rating is added with weight α|r| (Rendle et al. 2021).
 */
export function implicitWeights({ alpha, unobservedWeight }: WeightParams): ImplicitWeights {
  if (alpha === 'auto') throw new Error('α follows from sizes that are not known here: see sizedParams');
  return { alpha, base: unobservedWeight === undefined ? 1 : 0 };
}

/**
 * For each row, the number that is added to the diagonal of its equations (shift_u): λ n_u⁺^ν, or with
 * `unobservedWeight` w, λ (n_u⁺ + w · columns)^ν (Rendle et al. 2021, section 3.3). n_u⁺: number of the row's
 * positive ratings. `columns`: number of rows of the other side.
 */
export function rowShifts(block: RatingBlock, columns: number, params: ShiftParams): Float32Array {
  const { rows, offsets, values } = block;
  const positive = new Int32Array(rows);
  for (let row = 0; row < rows; row++)
    for (let k = offsets[row]; k < offsets[row + 1]; k++) positive[row] += values[k] > 0 ? 1 : 0;
  return shiftsOf(positive, columns, params);
}

/**
 * Σ (α r + base) over all positive ratings, in float64: the constant term of the loss of implicit data, which
 * solving the users does not compute.
 */
export function positiveTargets({ users, sum }: PositiveCounts, { alpha, base }: ImplicitWeights): number {
  return alpha * sum + base * users.reduce((all, count) => all + count, 0);
}

/** Like rowShifts, from the number of positive ratings of each row. */
export function shiftsOf(
  positive: Int32Array,
  columns: number,
  { regParam, regExponent, unobservedWeight = 0 }: ShiftParams,
): Float32Array {
  const shifts = sharedArray(Float32Array, positive.length);
  for (let row = 0; row < shifts.length; row++)
    shifts[row] = regParam * (positive[row] + unobservedWeight * columns) ** regExponent;
  return shifts;
}
