import { keyCount } from '../../../engine/keys/key-column.ts';
import { sharedArray } from '../../../engine/partition.ts';
import { CounterRandom } from '../../../engine/random.ts';
import type { FactorModel } from '../../serving/factor-model.ts';
import type { ModelFactors } from '../factors.ts';
import type { SgdParams } from '../params.ts';
import type { WidenedRatings } from '../../ratings/ids/relabel.ts';

/**
 * The initial state of training that continues from a model: factors of all users and items, and with biases
 * the model's mean rating μ.
 */
export interface Continuation {
  readonly factors: ModelFactors;
  readonly mean?: number;
  /** Lower bound of the standard deviation of the ratings. */
  readonly leastDeviation: number;
  /** Positions of the users and items that are not in the model, ascending. */
  readonly newRows: { readonly users: Uint32Array; readonly items: Uint32Array };
  /** Mean of a side's rows in the model. */
  readonly meanRows: { readonly users: Float64Array; readonly items: Float64Array };
}

/** Number of random pairs from which the deviation of a model's predictions is estimated. */
const SAMPLED_PAIRS = 4096;

/**
 * Makes the initial state from a model. The model's rows are unchanged. New users and items start at the mean
 * row of their side, which gives them the model's average prediction (see solveNewRows). A model's user
 * biases contain μ, so μ is their mean.
 */
export function continueFrom(
  model: FactorModel,
  widened: WidenedRatings,
  { rank, biases }: Pick<SgdParams, 'rank' | 'biases'>,
): Continuation {
  const users = spreadRows(model.userFactors, model.rank, widened.users, keyCount(widened.indexed.users));
  const items = spreadRows(model.itemFactors, model.rank, widened.items, keyCount(widened.indexed.items));
  const factors = { userFactors: users.values, itemFactors: items.values };
  const newRows = { users: users.newRows, items: items.newRows };
  const meanRows = { users: users.meanRow, items: items.meanRow };
  const leastDeviation = predictionDeviation(model) / 2;
  return { factors, leastDeviation, newRows, meanRows, ...(biases ? { mean: users.meanRow[rank] } : {}) };
}

/**
 * Estimates the standard deviation σ of a model's predictions from random pairs. Half of it is a lower bound
 * for the σ of new ratings, because the unit of SGD's steps is the σ of the ratings: a few new ratings that
 * are nearly equal (fifty of 5 and one of 4.5) have a small σ, so that steps would be many times too long.
 * The bound is less than the σ of ratings like the ones that the model was trained on.
 */
function predictionDeviation({ rank, users, items, userFactors, itemFactors }: FactorModel): number {
  const [rows, columns] = [keyCount(users), keyCount(items)];
  if (rows === 0 || columns === 0) return 0;
  const random = new CounterRandom(0, 0x5c41);
  const predictions = Float64Array.from({ length: SAMPLED_PAIRS }, (_, pair) => {
    const [user, item] = [random.below(2 * pair, rows), random.below(2 * pair + 1, columns)];
    let sum = 0;
    for (let k = 0; k < rank; k++) sum += userFactors[user * rank + k] * itemFactors[item * rank + k];
    return sum;
  });
  const mean = predictions.reduce((sum, one) => sum + one, 0) / SAMPLED_PAIRS;
  const variance = predictions.reduce((sum, one) => sum + (one - mean) ** 2, 0) / SAMPLED_PAIRS;
  return Number.isFinite(variance) ? Math.sqrt(variance) : 0;
}

/**
 * Returns a matrix of `rows` rows, with the given rows at the ascending positions `places`, and their mean at
 * all other positions.
 */
function spreadRows(
  factors: Float32Array,
  rank: number,
  places: Uint32Array,
  rows: number,
): { values: Float32Array; meanRow: Float64Array; newRows: Uint32Array } {
  const meanRow = meanOf(factors, rank, places.length);
  if (rows === places.length) return { values: factors, meanRow, newRows: new Uint32Array(0) };
  const values = sharedArray(Float32Array, rows * rank);
  const newRows = new Uint32Array(rows - places.length);
  let found = 0;
  for (let place = 0; place < rows;) {
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
