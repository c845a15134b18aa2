import { hostDevice } from '../../engine/run/devices.ts';
import { type KeyColumn, keyCount, takeKeys } from '../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { dataSetName, sharedArray } from '../../engine/partition.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { type FactorModel, lookupOf } from './factor-model.ts';
import type { Similarity } from './similarity.ts';
import { unitVector } from './unit-vector.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../ratings/rating-block.ts';

export interface SimilarQuery {
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
  const asked = sharedArray(Float32Array, positions.length * features);
  positions.forEach((position, i) =>
    asked.set(all.subarray(position * features, (position + 1) * features), i * features),
  );
  return {
    rank: features,
    users: takeKeys(ids, positions),
    userFactors: asked,
    items: ids,
    itemFactors: all,
  };
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
  const partition = emptyBlock(new Int32Array(positions.length).fill(1));
  (partition.columns.indices as Uint32Array).set(positions);
  const ref = { name: dataSetName('themselves'), partition: 0, version: 0 };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, partition]]);
  return blockOf(ref, partition);
}
