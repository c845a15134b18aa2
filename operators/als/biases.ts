import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { TrainedSide } from './bind/als-data.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import { blocksOf, rowParts, type SortedRatings } from '../ratings/spilled-ratings.ts';

/** μ: the mean rating, summed in float64 in the block's order, which doesn't depend on the input's. */
export function meanRating({ values }: RatingBlock): number {
  return addRatings(values, 0) / values.length;
}

/** The same of ratings that may lie in files. */
export async function meanOfSorted(ratings: SortedRatings, ctx: ExecutionContext): Promise<number> {
  let sum = 0;
  for await (const { block } of blocksOf(ratings, ctx)) sum = addRatings(block.values, sum);
  return sum / ratings.ratings;
}

/** σ: the ratings' standard deviation about their mean μ, likewise. */
export async function deviationOfSorted(ratings: SortedRatings, mean: number, ctx: ExecutionContext): Promise<number> {
  let sum = 0;
  for await (const { block } of blocksOf(ratings, ctx)) sum = addSquares(block.values, mean, sum);
  return Math.sqrt(sum / ratings.ratings);
}

function addRatings(values: Float32Array, before: number): number {
  let sum = before;
  for (let k = 0; k < values.length; k++) sum += values[k];
  return sum;
}

function addSquares(values: Float32Array, mean: number, before: number): number {
  let sum = before;
  for (let k = 0; k < values.length; k++) sum += (values[k] - mean) ** 2;
  return sum;
}

/** Σ (λ n_u + d) β_u² */
export function biasPenalty(ratings: SortedRatings, bias: Float32Array, lambda: number, damping: number): number {
  let sum = 0;
  for (const { from, rows, offsets } of rowParts(ratings)) {
    for (let row = 0; row < rows; row++) sum += (lambda * (offsets[row + 1] - offsets[row]) + damping) * bias[from + row] ** 2;
  }
  return sum;
}

/**
 * Biases as two more features, so that the product of the vectors is the prediction:
 *
 *     [x_u, β_u + μ, 1] · [θ_v, 1, γ_v]  =  x_uᵀθ_v + β_u + μ + γ_v
 */
export function foldBiases(users: TrainedSide, items: TrainedSide, mean: number, rank: number): { userFactors: Float32Array; itemFactors: Float32Array } {
  return {
    userFactors: folded(users, rank, (row, at) => {
      row[at] = row[at] + mean;
      row[at + 1] = 1;
    }),
    itemFactors: folded(items, rank, (row, at) => {
      row[at + 1] = row[at];
      row[at] = 1;
    }),
  };
}

/** The factors with room for two features; `place` writes the bias of each row, which it finds at `at`. */
function folded({ values, bias = new Float32Array(0) }: TrainedSide, rank: number, place: (all: Float32Array, at: number) => void): Float32Array {
  const all = sharedArray(Float32Array, bias.length * (rank + 2));
  for (let row = 0; row < bias.length; row++) {
    const at = row * (rank + 2);
    all.set(values.subarray(row * rank, (row + 1) * rank), at);
    all[at + rank] = bias[row];
    place(all, at + rank);
  }
  return all;
}
