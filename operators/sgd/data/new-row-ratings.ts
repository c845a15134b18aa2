import { oneBlock } from '../../ratings/ratings.ts';
import type { SgdData, SgdSide } from './data.ts';

/** The ratings of users, or of items, that a model does not have when training continues from it. */
export interface NewRowRatings {
  readonly name: 'users' | 'items';
  /** Position of each new row, ascending. */
  readonly positions: Uint32Array;
  /** Start of each row's ratings, Int32[new rows + 1]. */
  readonly offsets: Int32Array;
  /** The other side of each rating, as labels (random row numbers), ascending inside each row. */
  readonly others: Uint32Array;
  /** The ratings, before scaling. */
  readonly values: Float32Array;
}

/**
 * Copies the ratings of the rows at the given positions (row numbers by ascending id) of a side, and undoes
 * their scaling.
 */
export function newRowRatings(data: SgdData, name: 'users' | 'items', positions: Uint32Array): NewRowRatings {
  return data.rows.name === name ? ofRows(data, positions) : ofColumns(data, positions);
}

function ofRows(data: SgdData, positions: Uint32Array): NewRowRatings {
  const {
    rows,
    scale: { center, deviation },
  } = data;
  const block = oneBlock(data.ratings);
  const target = room(rows, positions, block.offsets);
  positions.forEach((position, row) => {
    let from = block.offsets[rows.labels.label[position]];
    for (let to = target.offsets[row]; to < target.offsets[row + 1]; to++, from++) {
      target.others[to] = block.indices[from];
      target.values[to] = deviation * block.values[from] + center;
    }
  });
  return target;
}

/** Finds the ratings of columns by one pass over all ratings, which are sorted by row. */
function ofColumns(data: SgdData, positions: Uint32Array): NewRowRatings {
  const {
    columns,
    columnOffsets,
    scale: { center, deviation },
  } = data;
  const target = room(columns, positions, columnOffsets);
  if (positions.length === 0) return target;
  const block = oneBlock(data.ratings);
  // Index of the next rating of each column; -1 for columns that are not new.
  const next = new Int32Array(columnOffsets.length - 1).fill(-1);
  positions.forEach((position, row) => (next[columns.labels.label[position]] = target.offsets[row]));
  for (let row = 0; row < block.rows; row++) {
    for (let from = block.offsets[row]; from < block.offsets[row + 1]; from++) {
      const column = block.indices[from];
      if (next[column] < 0) continue;
      const to = next[column]++;
      target.others[to] = row;
      target.values[to] = deviation * block.values[from] + center;
    }
  }
  return target;
}

/** Allocates the result. `starts`: index of the first rating of each label of the side. */
function room(
  { name, labels }: SgdSide,
  positions: Uint32Array,
  starts: Int32Array | Float64Array,
): NewRowRatings {
  const offsets = new Int32Array(positions.length + 1);
  positions.forEach((position, row) => {
    const label = labels.label[position];
    offsets[row + 1] = offsets[row] + starts[label + 1] - starts[label];
  });
  const ratings = offsets[positions.length];
  return { name, positions, offsets, others: new Uint32Array(ratings), values: new Float32Array(ratings) };
}
