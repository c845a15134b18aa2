import { keyCount } from '../engine/keys/key-column.ts';
import { sharedArray } from '../engine/partition.ts';
import type { FactorModel } from './factor-model.ts';
import type { ModelFactors } from './sgd-factors.ts';
import type { SgdParams } from './sgd-params.ts';
import type { WidenedRatings } from './widen-ratings.ts';

/** Where training goes on: the factors of all users and items, and with biases the μ that they are about. */
export interface Continuation {
  readonly factors: ModelFactors;
  readonly mean?: number;
}

/**
 * The start from a model: its rows are as they were, and new users and items begin at the mean row of their side, which
 * predicts for them what the model predicts on average. μ is the mean of the users' biases, in which a model has it.
 */
export function continueFrom(model: FactorModel, widened: WidenedRatings, { rank, biases }: Pick<SgdParams, 'rank' | 'biases'>): Continuation {
  const users = spreadRows(model.userFactors, model.rank, widened.users, keyCount(widened.indexed.users));
  const items = spreadRows(model.itemFactors, model.rank, widened.items, keyCount(widened.indexed.items));
  const factors = { userFactors: users.values, itemFactors: items.values };
  return biases ? { factors, mean: users.meanRow[rank] } : { factors };
}

function spreadRows(factors: Float32Array, rank: number, places: Uint32Array, rows: number): { values: Float32Array; meanRow: Float64Array } {
  const meanRow = new Float64Array(rank);
  for (let at = 0; at < factors.length; at++) meanRow[at % rank] += factors[at];
  for (let k = 0; k < rank; k++) meanRow[k] /= Math.max(1, places.length);
  const values = sharedArray(Float32Array, rows * rank);
  for (let row = 0; row < rows; row++) values.set(meanRow, row * rank);
  places.forEach((place, row) => values.set(factors.subarray(row * rank, (row + 1) * rank), place * rank));
  return { values, meanRow };
}
