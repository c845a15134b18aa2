import { type KeyColumn, takeKeys } from '../../../engine/keys/key-column.ts';
import { keyHashes } from '../../../engine/keys/key-hash.ts';
import { dataSetName, partitionRef } from '../../../engine/partition.ts';
import { mix32 } from '../../../engine/random.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { giveTo } from '../../../engine/run/run-steps.ts';
import { nextTurn } from '../../../engine/waits.ts';
import { blocksOf } from '../../ratings/parts-in-files.ts';
import {
  blockOf,
  blockOfColumns,
  emptyBlock,
  hostForm,
  type RatingBlock,
  type Ratings,
} from '../../ratings/ratings.ts';
import { mergeAscending } from '../../serving/choose-items.ts';
import { type FactorModel, withRows } from '../../serving/factor-model.ts';
import type { RowCounts } from '../rating-facts.ts';
import { lowerBound } from './item-order.ts';

/** Positives of a test set that a model can rank, and counts of the removed pairs. */
interface RankedTest {
  /** Distinct pairs over the users and items of the model, none of them excluded. */
  readonly positives: RatingBlock;
  /** Numbers of removed pairs: pairs that are also excluded, and repetitions of another pair. */
  readonly leaked: number;
  readonly repeated: number;
}

/** Removes the pairs of a test set that are also excluded, and repeated ones. */
export function rankedTest(test: RatingBlock, exclude: RatingBlock | undefined): RankedTest {
  const kept = new Uint32Array(test.ratings);
  const lengths = new Int32Array(test.rows);
  let [count, leaked, repeated] = [0, 0, 0];
  for (let user = 0; user < test.rows; user++) {
    const first = count;
    for (let k = test.offsets[user]; k < test.offsets[user + 1]; k++) {
      const item = test.indices[k];
      if (k > test.offsets[user] && test.indices[k - 1] === item) repeated++;
      else if (exclude !== undefined && hasItem(exclude, user, item)) leaked++;
      else kept[count++] = item;
    }
    lengths[user] = count - first;
  }
  const positives = blockOfColumns('positives', [kept.subarray(0, count)], lengths);
  return { positives, leaked, repeated };
}

/** True if a user has an item in a block. */
export function hasItem({ offsets, indices }: RatingBlock, user: number, item: number): boolean {
  const at = lowerBound(indices, item, offsets[user], offsets[user + 1]);
  return at < offsets[user + 1] && indices[at] === item;
}

/** Number of distinct items of each user in a block. */
export function distinctItems({ rows, offsets, indices }: RatingBlock): Uint32Array {
  const counts = new Uint32Array(rows);
  for (let user = 0; user < rows; user++)
    for (let k = offsets[user]; k < offsets[user + 1]; k++)
      if (k === offsets[user] || indices[k] !== indices[k - 1]) counts[user]++;
  return counts;
}

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
  return blockOf(partitionRef(dataSetName('rows')), partition);
}

/** The block with the same number of rows, in which all other rows are empty. */
export function onlyRows(block: RatingBlock, positions: Uint32Array): RatingBlock {
  const taken = rowsAt(block, positions);
  const offsets = new Int32Array(new SharedArrayBuffer(4 * (block.rows + 1)));
  positions.forEach((row, at) => (offsets[row + 1] = taken.offsets[at + 1] - taken.offsets[at]));
  for (let row = 0; row < block.rows; row++) offsets[row + 1] += offsets[row];
  return { ...taken, rows: block.rows, offsets };
}

/**
 * Given if test pairs that the model does not know count as misses: the number of each user's test items that
 * it does not know, and the number of unknown users, whose measures are all 0.
 */
export interface MissedPairs {
  readonly positives: Int32Array;
  readonly users: number;
}

/** Users with positives, and the pairs not to rank: blocks over the same users and items. */
export interface UsersToRank {
  readonly positives: RatingBlock;
  readonly seen: RatingBlock | undefined;
}

/**
 * A model to measure with its test pairs and the pairs seen in training, as blocks over the model's users and
 * items.
 */
export interface RankedPairs extends UsersToRank {
  readonly model: FactorModel;
  readonly counts?: RowCounts | undefined;
  readonly missing: MissedPairs | undefined;
  /** Items to rank for each user, if not all. */
  readonly lists?: RatingBlock | undefined;
}

/** The pairs to rank by baselines, which use the items of a model and not its factors. */
export type BaselinePairs = Omit<RankedPairs, 'model' | 'counts' | 'missing'> & {
  readonly model: Pick<RankedPairs['model'], 'items'>;
};

/**
 * Draws `most` of the users who have test pairs and keeps only their pairs. Users that the model does not
 * know may count with measures of 0; their number is then reduced by the same proportion.
 */
export async function drawnPairs(
  pairs: RankedPairs,
  { most, seed }: { readonly most: number; readonly seed: number },
  ctx: ExecutionContext,
): Promise<{ readonly pairs: RankedPairs; readonly availableUsers: number }> {
  const { model, counts, positives, seen, missing, lists } = pairs;
  const eligible = Uint32Array.from({ length: positives.rows }, (_, user) => user).filter(
    (user) => positives.offsets[user + 1] > positives.offsets[user] || (missing?.positives[user] ?? 0) > 0,
  );
  const unknown = missing?.users ?? 0;
  const availableUsers = eligible.length + unknown;
  if (availableUsers <= most) return { pairs, availableUsers };
  const known = Math.round((most * eligible.length) / availableUsers);
  const drawn = drawUsers(model.users, eligible, known, seed);
  const ranked = {
    lists: lists && rowsAt(lists, drawn),
    model: withRows(model, 'users', drawn),
    counts: counts && { ...counts, users: counts.users && drawn.map((user) => counts.users![user]) },
    positives: rowsAt(positives, drawn),
    seen: seen && (await givenRows(seen, drawn, ctx)),
    missing: missing && {
      positives: Int32Array.from(drawn, (user) => missing.positives[user]),
      users: most - known,
    },
  };
  return { pairs: ranked, availableUsers };
}

/** Some rows of a block as a block in the memory of the CPU's threads. */
async function givenRows(
  block: RatingBlock,
  positions: Uint32Array,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const rows = rowsAt(block, positions);
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[rows.ref, hostForm(rows)]]);
  return rows;
}

/** Number of rows after which other work of this thread gets a turn. */
const ROWS_AT_ONCE = 1 << 16;

/**
 * The columns of the ratings of some rows (ascending positions), as one block without values. Ratings in
 * files are read in one pass.
 */
export async function seenRows(
  ratings: Ratings,
  positions: Uint32Array,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  const pieces = Array.from(positions, (): Uint32Array[] => []);
  for await (const { from, firstColumn, block } of blocksOf(ratings, ctx)) {
    positions.forEach((row, at) => {
      if (row < from || row >= from + block.rows) return;
      const [start, end] = [block.offsets[row - from], block.offsets[row - from + 1]];
      if (end > start) pieces[at].push(block.indices.slice(start, end).map((column) => firstColumn + column));
    });
  }
  const lengths = Int32Array.from(pieces, (own) => own.reduce((sum, { length }) => sum + length, 0));
  return blockOfColumns('seen', pieces.flat(), lengths);
}

/** Number of distinct rows of each column. */
export async function usersOfItems(
  ratings: Ratings,
  columns: number,
  ctx: ExecutionContext,
): Promise<Uint32Array> {
  const counts = new Uint32Array(columns);
  for await (const {
    firstColumn,
    block: { rows, offsets, indices },
  } of blocksOf(ratings, ctx)) {
    for (let row = 0; row < rows; row++) {
      if (row % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await nextTurn();
      for (let k = offsets[row]; k < offsets[row + 1]; k++)
        if (k === offsets[row] || indices[k] !== indices[k - 1]) counts[firstColumn + indices[k]]++;
    }
  }
  return counts;
}

/** Pairs of users and items to rank instead of all items: a block over the users and items of the model. */
export interface CandidatePairs extends Pick<CandidateCounts, 'pairs' | 'coldPairs'> {
  readonly block: RatingBlock;
}

/** Counts of candidates by outcome, as plain data. */
export type CandidateCounts = {
  /** Number of rows, and of rows with a user or item that the model does not know. */
  readonly pairs: number;
  readonly coldPairs: number;
  /** Candidates that are not ranked: excluded, repeating another, or of users without a known test pair. */
  readonly excludedPairs: number;
  readonly repeatedPairs: number;
  readonly idlePairs: number;
  /** Users with test pairs who are not ranked, since they have no candidate except their own test items. */
  readonly usersWithout: number;
};

interface CandidateLists {
  /** Items of each user to rank, including positives: distinct, ascending. */
  readonly lists: RatingBlock;
  /** Positives of the users who are ranked. */
  readonly positives: RatingBlock;
  /** Number of unknown positives of the users who are ranked. */
  readonly missing: Int32Array | undefined;
  readonly counts: CandidateCounts;
}

interface ListedTest extends UsersToRank {
  /** Number of each user's positives with unknown items, if these count. */
  readonly missing: Int32Array | undefined;
}

/**
 * Makes the list of items to rank for each user: the user's candidates and test items, without the items that
 * the user has seen.
 */
export function candidateLists(
  { block, pairs, coldPairs }: CandidatePairs,
  { positives, seen, missing }: ListedTest,
): CandidateLists {
  const { rows } = positives;
  const [lengths, items] = [new Int32Array(rows), [] as Uint32Array[]];
  let [excludedPairs, repeatedPairs, idlePairs, usersWithout] = [0, 0, 0, 0];
  for (let user = 0; user < rows; user++) {
    const given = block.indices.subarray(block.offsets[user], block.offsets[user + 1]);
    const own = positives.indices.subarray(positives.offsets[user], positives.offsets[user + 1]);
    if (own.length === 0 && (missing?.[user] ?? 0) === 0) {
      idlePairs += given.length;
      continue;
    }
    const distinct = given.filter((item, k) => k === 0 || item !== given[k - 1]);
    const unseen = seen === undefined ? distinct : distinct.filter((item) => !hasItem(seen, user, item));
    repeatedPairs += given.length - distinct.length;
    excludedPairs += distinct.length - unseen.length;
    const list = mergeAscending(unseen, own);
    // A list of only test items would get a perfect score in any order, so the user is not ranked.
    if (list.length === own.length) usersWithout++;
    else {
      items.push(list);
      lengths[user] = list.length;
    }
  }
  const ranked = Uint32Array.from({ length: rows }, (_, user) => user).filter((user) => lengths[user] > 0);
  return {
    lists: blockOfColumns('candidates', items, lengths),
    positives: onlyRows(positives, ranked),
    missing: missing && missing.map((count, user) => (lengths[user] > 0 ? count : 0)),
    counts: { pairs, coldPairs, excludedPairs, repeatedPairs, idlePairs, usersWithout },
  };
}
