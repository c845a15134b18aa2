import { keyCount } from '../../../engine/keys/key-column.ts';
import { sharedArray } from '../../../engine/partition.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import type { AlsStart, TrainedSide } from '../../../operators/als/bind/als-data.ts';
import { startNorm } from '../../../operators/als/rating-unit.ts';
import { type SparkStart, sparkRows } from '../../../operators/als/spark-start.ts';
import type { IndexedRatings } from '../../../operators/ratings/ids/index-ids.ts';

type Ids = Pick<IndexedRatings, 'users' | 'items'>;

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
 * The start of Spark's ALS for ratings divided by `unit`. It stays in host memory during the run. Undefined if
 * it takes more than `room` bytes, or for ids that Spark's ALS does not have: then factors are drawn as usual.
 */
export function startOfSpark(
  start: SparkStart,
  ids: Ids,
  params: AlsParams,
  { unit, room }: { readonly unit: number; readonly room: number },
): AlsStart | undefined {
  const { rank } = params;
  if (4 * rank * (keyCount(ids.users) + keyCount(ids.items)) > room) return undefined;
  const drawn = sparkRows(ids.users, rank, start, startNorm(unit));
  return drawn && startOfUsers(drawn, ids, params);
}
