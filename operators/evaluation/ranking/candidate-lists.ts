import { dataSetName } from '../../../engine/partition.ts';
import { blockOf, emptyBlock, type RatingBlock } from '../../ratings/rating-block.ts';
import { holds } from './ranked-test.ts';
import { onlyRows } from './ranked-users.ts';

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

export interface CandidateLists {
  /** Items of each user to rank, including positives: distinct, ascending. */
  readonly lists: RatingBlock;
  /** Positives of the users who are ranked. */
  readonly positives: RatingBlock;
  /** Number of unknown positives of the users who are ranked. */
  readonly missing: Int32Array | undefined;
  readonly counts: CandidateCounts;
}

export interface ListedTest {
  readonly positives: RatingBlock;
  readonly seen: RatingBlock | undefined;
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
    const unseen = seen === undefined ? distinct : distinct.filter((item) => !holds(seen, user, item));
    repeatedPairs += given.length - distinct.length;
    excludedPairs += distinct.length - unseen.length;
    const list = merged(unseen, own);
    // A list of only test items would get a perfect score in any order, so the user is not ranked.
    if (list.length === own.length) usersWithout++;
    else lengths[user] = items.push(list) && list.length;
  }
  const ranked = Uint32Array.from({ length: rows }, (_, user) => user).filter((user) => lengths[user] > 0);
  const partition = emptyBlock(lengths);
  items.reduce(
    (filled, list) => ((partition.columns.indices as Uint32Array).set(list, filled), filled + list.length),
    0,
  );
  return {
    lists: blockOf({ name: dataSetName('candidates'), partition: 0, version: 0 }, partition),
    positives: onlyRows(positives, ranked),
    missing: missing && missing.map((count, user) => (lengths[user] > 0 ? count : 0)),
    counts: { pairs, coldPairs, excludedPairs, repeatedPairs, idlePairs, usersWithout },
  };
}

/** Union of two ascending lists, ascending. */
function merged(left: Uint32Array, right: Uint32Array): Uint32Array {
  const both = new Uint32Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  both.sort();
  return both.filter((item, k) => k === 0 || item !== both[k - 1]);
}
