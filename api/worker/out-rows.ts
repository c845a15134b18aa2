import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import type { RatingBlock } from '../../operators/ratings/ratings.ts';

/** Spreads ids with a constant distance over all blocks. */
const SPREAD = 0x9e3779b1;

/**
 * The block, 0 .. blocks - 1, to which each id belongs. The parent divides ratings by the same function, see
 * docs/reference/worker-protocol.md. An int64 id within int32's range has the block of the int32 id.
 */
export function blocksOfIds(keys: KeyColumn, blocks: number): Uint32Array {
  if (keys.type === 'utf8') throw new Error('ids of text have no blocks');
  const found = new Uint32Array(keyCount(keys));
  for (let i = 0; i < found.length; i++) {
    const id =
      keys.type === 'int32'
        ? keys.values[i]
        : keys.halves[2 * i] ^ keys.halves[2 * i + 1] ^ (keys.halves[2 * i] >> 31);
    const mixed = Math.imul(id, SPREAD);
    const signed = (mixed ^ (mixed >>> 15)) % blocks;
    found[i] = signed < 0 ? signed + blocks : signed;
  }
  return found;
}

/**
 * For each block of the other side, the rows of this block that it needs, ascending: the rows with a rating
 * in one of its columns. Every rating is in a block of each side, so no worker has to ask another one.
 *
 *     rows 0: {columns 0 1}, 1: {column 1}; owners of the columns 0, 1: blocks 0, 1   =   [[0], [0, 1]]
 */
export function outRows(
  { rows, offsets, indices }: RatingBlock,
  owners: Uint32Array,
  blocks: number,
): Uint32Array[] {
  const counts = new Uint32Array(blocks);
  eachOut({ rows, offsets, indices }, owners, blocks, (_, block) => counts[block]++);
  const lists = Array.from(counts, (count) => new Uint32Array(count));
  counts.fill(0);
  eachOut({ rows, offsets, indices }, owners, blocks, (row, block) => {
    lists[block][counts[block]++] = row;
  });
  return lists;
}

/** Calls `found` once for each pair of a row and a block with ratings of that row. */
function eachOut(
  { rows, offsets, indices }: Pick<RatingBlock, 'rows' | 'offsets' | 'indices'>,
  owners: Uint32Array,
  blocks: number,
  found: (row: number, block: number) => void,
): void {
  /** The number + 1 of the last row that was found for each block. */
  const last = new Uint32Array(blocks);
  for (let row = 0; row < rows; row++) {
    for (let k = offsets[row]; k < offsets[row + 1]; k++) {
      const block = owners[indices[k]];
      if (last[block] === row + 1) continue;
      last[block] = row + 1;
      found(row, block);
    }
  }
}

/** Rows that are sent to a block; undefined for all, if the block needs more than this share of them. */
export function mostOrAll(needed: Uint32Array, rows: number, most: number): Uint32Array | undefined {
  return needed.length > most * rows ? undefined : needed;
}
