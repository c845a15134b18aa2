import type { JsonObject } from '../../engine/json.ts';
import type { SgdData } from './data/data.ts';
import { biasColumns } from './factors.ts';
import type { SgdParams } from './params.ts';

/**
 * Standard deviation of a factor at the start, on the scale of SgdData. Smaller is better where there are
 * many epochs' worth of ratings (test RMSE at MovieLens-20M's shape, k = 32: 0.739 from 0.03, 0.740 from
 * 0.06, 0.742 from 0.1), larger where there are few (ml-latest-small with biases: 0.848, 0.844, 0.843).
 *
 */
const SPREAD = 0.06;

/**
 * Parameters of the task `initialize` for the rows or the columns. Without biases all factors also get the
 * same shift, so that products begin at the mean rating: k · √(|μ|/σk) · ±√(|μ|/σk) = μ/σ.
 *
 */
export function startParams(
  { rank, seed, biases }: Pick<SgdParams, 'rank' | 'seed' | 'biases'>,
  { scale }: Pick<SgdData, 'scale'>,
  isRow: boolean,
): JsonObject {
  const level = scale.mean / scale.deviation;
  const shift = Math.sqrt(Math.abs(level) / rank) * (isRow ? 1 : Math.sign(level));
  const form = biases ? { first: 2, oneAt: biasColumns(isRow).one } : { shift };
  return { rank, seed, norm: SPREAD * Math.sqrt(rank), ...form };
}
