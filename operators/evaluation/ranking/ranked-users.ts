import { keyHashes } from '../../../engine/keys/key-hash.ts';
import { type KeyColumn, takeKeys } from '../../../engine/keys/key-column.ts';
import { dataSetName } from '../../../engine/partition.ts';
import { mix32 } from '../../../engine/random.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import type { FactorModel } from '../../serving/factor-model.ts';

/**
 * By default at most this number of users is ranked. Their means differ from the means of all users by about
 * 0.01 at most.
 */
export const RANKED_USERS = 10_000;

/**
 * Number of this random stream: it makes the draw of users independent of the draws of splits with the same
 * seed.
 */
const STREAM = 0x7a4e_d05e;

/** Positions of the users who have pairs in a block. */
export function usersOf({ rows, offsets }: Pick<RatingBlock, 'rows' | 'offsets'>): Uint32Array {
  return Uint32Array.from({ length: rows }, (_, user) => user).filter(
    (user) => offsets[user + 1] > offsets[user],
  );
}

/**
 * All given positions of users, or `most` of them, ascending: the users with the smallest hashes of id and
 * seed. So the drawn users depend neither on the order of rows nor on the model, only on the ids.
 */
export function drawUsers(users: KeyColumn, positions: Uint32Array, most: number, seed: number): Uint32Array {
  if (positions.length <= most) return positions;
  const { low, high } = keyHashes(takeKeys(users, positions));
  const key = mix32(seed, STREAM);
  const hashes = Uint32Array.from(positions, (_, i) => mix32(mix32(key, low[i]), high[i]));
  const last = hashes.slice().sort()[most - 1];
  let atLast = most - hashes.reduce((count, hash) => count + (hash < last ? 1 : 0), 0);
  return positions.filter((_, i) => hashes[i] < last || (hashes[i] === last && atLast-- > 0));
}

/** Some rows of a block, renumbered from 0. */
export function rowsAt({ offsets, indices, values }: RatingBlock, positions: Uint32Array): RatingBlock {
  const partition = emptyBlock(Int32Array.from(positions, (row) => offsets[row + 1] - offsets[row]));
  const target = partition.columns as { offsets: Int32Array; indices: Uint32Array; values: Float32Array };
  positions.forEach((row, at) => {
    target.indices.set(indices.subarray(offsets[row], offsets[row + 1]), target.offsets[at]);
    if (values.length > 0)
      target.values.set(values.subarray(offsets[row], offsets[row + 1]), target.offsets[at]);
  });
  return blockOf({ name: dataSetName('rows'), partition: 0, version: 0 }, partition);
}

/** The block with the same number of rows, in which all other rows are empty. */
export function onlyRows(block: RatingBlock, positions: Uint32Array): RatingBlock {
  const taken = rowsAt(block, positions);
  const offsets = new Int32Array(new SharedArrayBuffer(4 * (block.rows + 1)));
  positions.forEach((row, at) => (offsets[row + 1] = taken.offsets[at + 1] - taken.offsets[at]));
  for (let row = 0; row < block.rows; row++) offsets[row + 1] += offsets[row];
  return { ...taken, rows: block.rows, offsets };
}

/** The model with only some of its users. */
export function withUsers(
  { rank, users, items, userFactors, itemFactors }: FactorModel,
  positions: Uint32Array,
): FactorModel {
  const factors = new Float32Array(positions.length * rank);
  positions.forEach((user, at) =>
    factors.set(userFactors.subarray(user * rank, (user + 1) * rank), at * rank),
  );
  return { rank, users: takeKeys(users, positions), items, userFactors: factors, itemFactors };
}
