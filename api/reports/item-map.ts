import type { Id } from '../../engine/keys/find-id.ts';
import { principalPlane } from '../../operators/serving/principal-plane.ts';
import type { Model } from '../model.ts';

/** An item's position on the plane of largest variance of the item factors' directions. */
export interface MappedItem {
  readonly item: Id;
  readonly x: number;
  readonly y: number;
  /** Number of training ratings. */
  readonly ratings: number;
}

export interface ItemMap {
  /** By descending number of ratings; ties by id. */
  readonly items: readonly MappedItem[];
  /** Share of the variance that the plane shows, 0 to 1. */
  readonly share: number;
}

/**
 * The item factors scaled to length 1, so that distances in the plane correspond to cosines. With a single
 * factor they are not scaled, since all would become 1 or -1.
 */
function directions(values: Float32Array, stride: number, rank: number, rows: Uint32Array): Float32Array {
  const made = new Float32Array(rows.length * rank);
  for (const [at, row] of rows.entries()) {
    const own = values.subarray(row * stride, row * stride + rank);
    const length = rank === 1 ? 1 : Math.hypot(...own);
    if (length > 0) for (let k = 0; k < rank; k++) made[at * rank + k] = own[k] / length;
  }
  return made;
}

/**
 * Projects at most `most` items, those with the most ratings, on a plane. Undefined if the model has no
 * counts, or if all items have the same factors.
 */
export function itemMap(model: Model, most: number): ItemMap | undefined {
  const { itemCounts: counts, rank } = model;
  if (counts === undefined) return undefined;
  const { ids, values, columns } = model.itemArrays;
  const rows = Uint32Array.from(counts.keys())
    .sort((a, b) => counts[b] - counts[a] || a - b)
    .subarray(0, most);
  const { points, shares } = principalPlane({
    values: directions(values, columns, rank, rows),
    stride: rank,
    features: rank,
    rows: rows.map((_, at) => at),
  });
  if (!(shares[0] > 0)) return undefined;
  const items = Array.from(rows, (row, at) => ({
    item: ids[row],
    x: points[2 * at],
    y: points[2 * at + 1],
    ratings: counts[row],
  }));
  return { items, share: shares[0] + shares[1] };
}
