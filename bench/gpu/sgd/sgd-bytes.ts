/** Bytes that an epoch of SGD moves through a GPU's memory, by schedule. */
import { dealColumns } from '../../../gpu/sgd/sorting/tile-lists.ts';
import { strideOf } from '../../../gpu/device/resources.ts';
import { balancedRanges } from '../../../operators/ratings/row-ranges.ts';
import type { RatingBlock } from '../../../operators/ratings/rating-block.ts';
import { oneBlock } from '../../../operators/ratings/ratings.ts';
import type { SgdData } from '../../../operators/sgd/data/data.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';

/** The rules of `bytesOfEpoch`, for the text above a table. */
export const BYTES_RULES =
  'Bytes of an epoch: ratings once (8 bytes in tiles, else 12); a column’s factors in and out once by tiles, else at each rating; a row’s in and out where it changes in its tile or block (counted from the data), ' +
  'by hogwild at each rating; the conversion of all factors to float16 and back, or their copy. Hits in the caches are not subtracted.';

const visits = new WeakMap<SgdData, Map<string, number>>();

/** Bytes read and written by the kernels of one epoch. */
export function bytesOfEpoch(
  data: SgdData,
  { kind, precision = 'f32', tile, columnBands, workers }: SgdSchedule,
  rank: number,
): number {
  const { columnOffsets } = data;
  const block = oneBlock(data.ratings);
  const columns = columnOffsets.length - 1;
  const stride = strideOf(rank);
  const row = stride * (precision === 'f16' ? 2 : 4);
  const all = (block.rows + columns) * stride;
  // float16 converts in and out again; otherwise one copy; hogwild copies once more before that.
  const around =
    (precision === 'f16' ? 12 * all : 0) + (precision === 'f32' || kind === 'hogwild' ? 8 * all : 0);
  if (kind === 'hogwild') return block.ratings * (12 + 4 * row) + around;
  if (tile !== undefined)
    return (
      block.ratings * 8 +
      2 *
        row *
        (columns + visitsOf(data, `${tile.tiles} tiles`, () => tileOfColumns(data, columns, tile.tiles))) +
      around
    );
  return (
    block.ratings * (12 + 2 * row) +
    2 *
      row *
      visitsOf(data, `${columnBands} bands of ${workers}`, () => bandOfColumns(columnOffsets, columnBands)) +
    around
  );
}

/** Number of visits of a row by a tile or a band of columns: (row, tile) pairs with ratings. */
function visitsOf(data: SgdData, key: string, partOf: () => Uint32Array): number {
  const known = visits.get(data) ?? new Map<string, number>();
  visits.set(data, known);
  const found = known.get(key) ?? countVisits(oneBlock(data.ratings), partOf());
  known.set(key, found);
  return found;
}

function countVisits({ rows, offsets, indices }: RatingBlock, partOf: Uint32Array): number {
  const last = new Int32Array(partOf.reduce((most, part) => Math.max(most, part), 0) + 1).fill(-1);
  let count = 0;
  for (let row = 0; row < rows; row++) {
    for (let at = offsets[row]; at < offsets[row + 1]; at++) {
      const part = partOf[indices[at]];
      if (last[part] === row) continue;
      last[part] = row;
      count++;
    }
  }
  return count;
}

function tileOfColumns(data: SgdData, columns: number, tiles: number): Uint32Array {
  const counts = new Uint32Array(columns);
  for (const column of oneBlock(data.ratings).indices) counts[column]++;
  return dealColumns(counts, tiles).placeOf.map((place) => place & 0xffff);
}

function bandOfColumns(columnOffsets: SgdData['columnOffsets'], bands: number): Uint32Array {
  const bandOf = new Uint32Array(columnOffsets.length - 1);
  balancedRanges(columnOffsets, bands, 0).forEach(({ from, to }, band) => bandOf.fill(band, from, to));
  return bandOf;
}
