import { dataSetName } from '../../../engine/partition.ts';
import { emptyBlock, blockOf, type RatingBlock } from '../../ratings/rating-block.ts';
import { lowerBound } from './item-order.ts';
import type { NamedMeasure, UserRanking } from './ranking-metrics.ts';

/** Positives of a test set that a model can rank, and counts of the removed pairs. */
export interface RankedTest {
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
      else if (exclude !== undefined && holds(exclude, user, item)) leaked++;
      else kept[count++] = item;
    }
    lengths[user] = count - first;
  }
  const partition = emptyBlock(lengths);
  (partition.columns.indices as Uint32Array).set(kept.subarray(0, count));
  return {
    positives: blockOf({ name: dataSetName('positives'), partition: 0, version: 0 }, partition),
    leaked,
    repeated,
  };
}

/** True if a user has an item in a block. */
export function holds({ offsets, indices }: RatingBlock, user: number, item: number): boolean {
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

/** Measures of each user who has positives: users x measures, row-major. */
export interface UserValues {
  readonly values: Float64Array;
  readonly means: Float64Array;
  readonly users: number;
}

export interface Ranked {
  readonly positives: RatingBlock;
  /** Rank and ties of each positive, in the order of the block: see Rankings. */
  readonly places: Uint32Array;
  readonly items: number;
  /** Number of each user's items that are not ranked. */
  readonly excluded: Uint32Array | undefined;
  /**
   * Given if test pairs that the model does not know count as misses: the number of each user's test items
   * that it does not know, and the number of unknown users, whose measures are all 0.
   */
  readonly missing?: { readonly positives: Int32Array; readonly users: number } | undefined;
}

export function userValues(
  { positives, places, items, excluded, missing }: Ranked,
  measures: readonly NamedMeasure[],
): UserValues {
  const { offsets, rows } = positives;
  const ofUser = (user: number) => ({
    ranked: offsets[user + 1] - offsets[user],
    lost: missing?.positives[user] ?? 0,
  });
  const isMeasured = ({ ranked, lost }: ReturnType<typeof ofUser>) => ranked > 0 || lost > 0;
  let users = missing?.users ?? 0;
  for (let user = 0; user < rows; user++) if (isMeasured(ofUser(user))) users++;
  const values = new Float64Array(users * measures.length);
  const means = new Float64Array(measures.length);
  const one = new OneUser();
  let at = 0;
  for (let user = 0; user < rows; user++) {
    const positivesOf = ofUser(user);
    if (!isMeasured(positivesOf)) continue;
    const candidates = items - (excluded?.[user] ?? 0);
    one.set(places, offsets[user], offsets[user + 1], positivesOf.lost, candidates);
    for (let m = 0; m < measures.length; m++) means[m] += values[at++] = measures[m].of(one);
  }
  return { values, means: means.map((sum) => sum / users), users };
}

/** The ranks of one user at a time. Its memory is reused for the next user. */
class OneUser implements UserRanking {
  groups = 0;
  above: number[] = [];
  tied: number[] = [];
  hits: number[] = [];
  ranked = 0;
  missing = 0;
  candidates = 0;

  /** Sets a user's ranks from the positives [from, to), which may be in any order. */
  set(places: Uint32Array, from: number, to: number, missing: number, candidates: number): void {
    [this.ranked, this.missing, this.candidates] = [to - from, missing, candidates];
    this.groups = 0;
    // Many positives are sorted before they are inserted, each at the end.
    if (this.ranked > 32) {
      const order = Uint32Array.from({ length: to - from }, (_, k) => from + k);
      order.sort((left, right) => places[2 * left] - places[2 * right]);
      order.forEach((k) => this.#insert(places[2 * k], places[2 * k + 1]));
    } else for (let k = from; k < to; k++) this.#insert(places[2 * k], places[2 * k + 1]);
  }

  /** Inserts a positive into the group of its rank. Without a score (no ties) it is in no group. */
  #insert(place: number, ties: number): void {
    if (ties === 0) return;
    const { above, tied, hits } = this;
    let at = this.groups;
    while (at > 0 && above[at - 1] > place) at--;
    if (at > 0 && above[at - 1] === place) {
      hits[at - 1]++;
      return;
    }
    for (let later = this.groups++; later > at; later--)
      [above[later], tied[later], hits[later]] = [above[later - 1], tied[later - 1], hits[later - 1]];
    [above[at], tied[at], hits[at]] = [place, ties, 1];
  }
}
