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
  /** Positions of the users and items that the model does not have, ascending. */
  readonly newRows: { readonly users: Uint32Array; readonly items: Uint32Array };
  /** The mean of a side's rows in the model. */
  readonly meanRows: { readonly users: Float64Array; readonly items: Float64Array };
}

/**
 * The start from a model: its rows are as they were, and new users and items are at the mean row of their side, which
 * predicts for them what the model predicts on average; see solveNewRows. μ is the mean of the users' biases, in which a model has it.
 */
export function continueFrom(model: FactorModel, widened: WidenedRatings, { rank, biases }: Pick<SgdParams, 'rank' | 'biases'>): Continuation {
  const users = spreadRows(model.userFactors, model.rank, widened.users, keyCount(widened.indexed.users));
  const items = spreadRows(model.itemFactors, model.rank, widened.items, keyCount(widened.indexed.items));
  const factors = { userFactors: users.values, itemFactors: items.values };
  const newRows = { users: users.newRows, items: items.newRows };
  const meanRows = { users: users.meanRow, items: items.meanRow };
  return { factors, newRows, meanRows, ...(biases ? { mean: users.meanRow[rank] } : {}) };
}

/** The rows at their places, which ascend, and the mean row everywhere else. */
function spreadRows(factors: Float32Array, rank: number, places: Uint32Array, rows: number): { values: Float32Array; meanRow: Float64Array; newRows: Uint32Array } {
  const meanRow = meanOf(factors, rank, places.length);
  if (rows === places.length) return { values: factors, meanRow, newRows: new Uint32Array(0) };
  const values = sharedArray(Float32Array, rows * rank);
  const newRows = new Uint32Array(rows - places.length);
  let found = 0;
  for (let place = 0; place < rows; ) {
    const row = place - found;
    if (row === places.length || places[row] > place) {
      newRows[found++] = place;
      values.set(meanRow, place++ * rank);
      continue;
    }
    let run = 1;
    while (row + run < places.length && places[row + run] === place + run) run++;
    values.set(factors.subarray(row * rank, (row + run) * rank), place * rank);
    place += run;
  }
  return { values, meanRow, newRows };
}

function meanOf(factors: Float32Array, rank: number, rows: number): Float64Array {
  const mean = new Float64Array(rank);
  for (let row = 0; row < rows; row++) for (let k = 0; k < rank; k++) mean[k] += factors[row * rank + k];
  return mean.map((sum) => sum / Math.max(1, rows));
}
