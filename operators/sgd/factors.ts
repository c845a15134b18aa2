import { sharedArray } from '../../engine/partition.ts';
import type { SgdData, SgdSide } from './data/data.ts';
import type { SgdParams } from './params.ts';

/** X and Θ of a model: rows by position, with biases the two features of foldBiases beside the rank. */
export interface ModelFactors {
  readonly userFactors: Float32Array;
  readonly itemFactors: Float32Array;
}

/** Columns of a side's matrix that precede the factors with biases: the side's own bias, and a 1 (layout features of sgd-tasks.ts). */
export function biasColumns(isRow: boolean): { readonly own: 0 | 1; readonly one: 0 | 1 } {
  return isRow ? { own: 0, one: 1 } : { own: 1, one: 0 };
}

/**
 * One side of a model, from its trained matrix (labels x features, on the scale of SgdData): factors times √σ on
 * both sides make products times σ, biases are multiplied by σ, μ goes to the users' bias, and labels become positions.
 *
 *     user [x, β + μ, 1] · item [θ, 1, γ]  =  xᵀθ + β + μ + γ
 */
export function toModelSide(values: Float32Array, side: SgdSide, isRow: boolean, data: SgdData, rank: number, biases: boolean): Float32Array {
  const { deviation, mean } = data.scale;
  const { order } = side.labels;
  const features = rank + (biases ? 2 : 0);
  const root = Math.sqrt(deviation);
  const first = biases ? 2 : 0;
  const { own } = biasColumns(isRow);
  const [biasAt, oneAt] = side.name === 'users' ? [rank, rank + 1] : [rank + 1, rank];
  const all = sharedArray(Float32Array, order.length * features);
  for (let label = 0; label < order.length; label++) {
    const [from, to] = [label * features, order[label] * features];
    for (let k = 0; k < rank; k++) all[to + k] = root * values[from + first + k];
    if (!biases) continue;
    all[to + biasAt] = deviation * values[from + own] + (side.name === 'users' ? mean : 0);
    all[to + oneAt] = 1;
  }
  return all;
}

/** Both sides of a model, from the trained matrices. */
export function modelFactors(rows: Float32Array, columns: Float32Array, data: SgdData, { rank, biases }: Pick<SgdParams, 'rank' | 'biases'>): ModelFactors {
  const rowSide = toModelSide(rows, data.rows, true, data, rank, biases);
  const columnSide = toModelSide(columns, data.columns, false, data, rank, biases);
  return data.rows.name === 'users' ? { userFactors: rowSide, itemFactors: columnSide } : { userFactors: columnSide, itemFactors: rowSide };
}

/** The inverse of toModelSide, for training that goes on from a model. */
export function fromModelSide(factors: Float32Array, side: SgdSide, isRow: boolean, data: SgdData, rank: number, biases: boolean): Float32Array {
  const { deviation, mean } = data.scale;
  // Reads in order and writes at random: half the time of the other way round.
  const { label } = side.labels;
  const features = rank + (biases ? 2 : 0);
  const scale = 1 / Math.sqrt(deviation);
  const first = biases ? 2 : 0;
  const { own, one } = biasColumns(isRow);
  const biasAt = side.name === 'users' ? rank : rank + 1;
  const all = sharedArray(Float32Array, label.length * features);
  for (let position = 0; position < label.length; position++) {
    const [from, to] = [position * features, label[position] * features];
    for (let k = 0; k < rank; k++) all[to + first + k] = scale * factors[from + k];
    if (!biases) continue;
    all[to + own] = (factors[from + biasAt] - (side.name === 'users' ? mean : 0)) / deviation;
    all[to + one] = 1;
  }
  return all;
}
