import { UsageError } from '../../engine/errors.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { blockOfColumns, hostForm, type RatingBlock } from '../ratings/ratings.ts';
import { type FactorModel, lookupOf, withRows } from './factor-model.ts';

/** Similarity of two vectors a and b: a·b / (‖a‖ ‖b‖), or a·b. */
export type Similarity = 'cosine' | 'dot';

export function checkSimilarity(value: string): Similarity {
  if (value === 'cosine' || value === 'dot') return value;
  throw new UsageError(`similarity must be cosine or dot, got ${value}`);
}

/**
 * The first `rank` numbers at `from`, divided by their length; zeros stay zeros. The result has the same bits
 * as the vectors of a search index, which the task `prepare-search` divides in the same way.
 */
export function unitVector(
  values: Float32Array,
  from: number,
  rank: number,
  target = new Float32Array(rank),
  at = 0,
): Float32Array {
  let squares = 0;
  for (let k = from; k < from + rank; k++) squares += values[k] ** 2;
  const length = Math.sqrt(squares);
  for (let k = 0; k < rank; k++) target[at + k] = length > 0 ? values[from + k] / length : 0;
  return target;
}

interface SimilarQuery {
  /** Ids of one side, ascending, and their factors: keyCount(ids) x rank. */
  readonly ids: KeyColumn;
  readonly factors: Float32Array;
  readonly rank: number;
  /** Number of features to compare, without the two that contain biases. */
  readonly features: number;
  /** Positions whose neighbours are requested. */
  readonly positions: Uint32Array;
  readonly similarity: Similarity;
}

/**
 * Turns a search for similar rows into a search for recommendations: a model whose users are the requested
 * rows and whose items are all rows. For cosines, rows are divided by their length; a row of zeros has
 * similarity 0.
 */
export function similarityModel({
  ids,
  factors,
  rank,
  features,
  positions,
  similarity,
}: SimilarQuery): FactorModel {
  const all = sharedArray(Float32Array, keyCount(ids) * features);
  for (let row = 0; row < keyCount(ids); row++) {
    if (similarity === 'cosine') unitVector(factors, row * rank, features, all, row * features);
    else all.set(factors.subarray(row * rank, row * rank + features), row * features);
  }
  const whole = { rank: features, users: ids, userFactors: all, items: ids, itemFactors: all };
  return withRows(whole, 'users', positions);
}

/**
 * Makes the pairs to exclude so that no row is its own neighbour: row i of the block contains the position of
 * user i among the items.
 */
export async function withoutThemselves(
  ctx: ExecutionContext,
  { users, items }: FactorModel,
): Promise<RatingBlock> {
  const positions = lookupOf(items).positionsOf(users);
  const block = blockOfColumns('themselves', [positions], new Int32Array(positions.length).fill(1));
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[block.ref, hostForm(block)]]);
  return block;
}
