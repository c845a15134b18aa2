import { keyCount } from '../../../engine/keys/key-column.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import type { AlsStart, TrainedSide } from '../../../operators/als/bind/als-data.ts';
import { startNorm } from '../../../operators/als/rating-unit.ts';
import { type SparkStart, sparkRows } from '../../../operators/als/spark-start.ts';
import type { IndexedRatings } from '../../../operators/ratings/ids/index-ids.ts';

type Ids = Pick<IndexedRatings, 'users' | 'items'>;

/** Most of the memory for data that the initial factors may take if they are made in host memory. */
const MOST = 1 / 8;

/** A start from the users' factors; the items' factors and all biases are zeros. */
export function startOfUsers(values: Float32Array, ids: Ids, { rank, biases }: AlsParams): AlsStart {
  const rows = { users: keyCount(ids.users), items: keyCount(ids.items) };
  const side = (of: Float32Array, length: number): TrainedSide => ({
    values: of,
    ...(biases ? { bias: sharedArray(Float32Array, length) } : {}),
  });
  return {
    users: side(values, rows.users),
    items: side(sharedArray(Float32Array, rows.items * rank), rows.items),
  };
}

/**
 * The start of Spark's ALS for ratings divided by `unit`. Undefined if `bytes` of memory for data have no room
 * for it, or for ids that Spark's ALS does not have: then factors are drawn as usual.
 */
export function startOfSpark(
  start: SparkStart,
  ids: Ids,
  params: AlsParams,
  { unit, bytes }: { readonly unit: number; readonly bytes: number },
): AlsStart | undefined {
  const { rank } = params;
  if (4 * rank * (keyCount(ids.users) + keyCount(ids.items)) > MOST * bytes) return undefined;
  const drawn = sparkRows(ids.users, rank, start, startNorm(unit));
  return drawn && startOfUsers(drawn, ids, params);
}
