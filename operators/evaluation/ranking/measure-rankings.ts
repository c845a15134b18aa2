import { blockOfColumns, type RatingBlock } from '../../ratings/ratings.ts';
import { coverage, type ItemFacts, type ListCounts, novelty } from './item-order.ts';
import type { MissedPairs } from './ranked-pairs.ts';
import type { ChosenMetrics, MetricValues, NamedMeasure, UserRanking } from './ranking-metrics.ts';

/** Computes rankings for a fixed set of users who have test items: ranks of the test items, and top lists. */
export interface Rankings {
  /**
   * Two numbers for each test item, in the order of their block: its rank, the number of ranked items with
   * higher scores; and its ties, the number of ranked items with its score, itself among them (0 if it has no
   * score). If `depth` is given, only the first `depth` ranks are exact; any other rank may be any number of
   * at least `depth`, with any ties.
   */
  places(depth: number | undefined): Promise<Uint32Array>;
  /** For each k: in how many users' first k items each item is expected. `ks` ascend. */
  lists(ks: readonly number[]): Promise<ListCounts>;
}

export interface MeasuredRankings {
  /** Means over users; NaN without users. */
  readonly metrics: MetricValues;
  /** Values of each user, for the metrics of single users. */
  readonly values: UserValues;
  /** Ranks of the positives: see Ranked. */
  readonly places: Uint32Array;
}

/**
 * The chosen metrics of rankings. Novelty needs facts about the training pairs, and is left out without them.
 */
export async function measureRankings(
  rankings: Rankings,
  ranked: Omit<Ranked, 'places'>,
  { measures, lists, depth }: ChosenMetrics,
  facts: ItemFacts | undefined,
): Promise<MeasuredRankings> {
  const places =
    measures.length > 0 ? await rankings.places(depth) : new Uint32Array(2 * ranked.positives.ratings);
  const values = userValues({ ...ranked, places }, measures);
  const ks = [...new Set(lists.map(({ k }) => k))].sort((left, right) => left - right);
  const counts = ks.length > 0 ? await rankings.lists(ks) : [];
  const ofLists = lists.flatMap(({ name, metric, k }) => {
    const own = counts[ks.indexOf(k)];
    if (metric === 'coverage') return [[name, coverage(own)] as const];
    return facts ? [[name, novelty(own.lists, facts.counts, facts.users)] as const] : [];
  });
  return {
    metrics: {
      ...Object.fromEntries(measures.map(({ name }, i) => [name, values.means[i]])),
      ...Object.fromEntries(ofLists),
    },
    values,
    places,
  };
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
  readonly missing?: MissedPairs | undefined;
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

/** Only the positives for which `isPart` is true. They keep their ranks among all items. */
export function partOf(
  { positives, places, items, excluded }: Ranked,
  isPart: (user: number, item: number) => boolean,
): Ranked {
  const { offsets, indices, rows } = positives;
  const [kept, lengths] = [new Uint32Array(indices.length), new Int32Array(rows)];
  let count = 0;
  for (let user = 0; user < rows; user++) {
    const first = count;
    for (let k = offsets[user]; k < offsets[user + 1]; k++) if (isPart(user, indices[k])) kept[count++] = k;
    lengths[user] = count - first;
  }
  const own = kept.subarray(0, count);
  const part = blockOfColumns('part', [own.map((k) => indices[k])], lengths);
  const ranks = new Uint32Array(2 * count);
  own.forEach((k, at) => ranks.set(places.subarray(2 * k, 2 * k + 2), 2 * at));
  return { positives: part, places: ranks, items, excluded };
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
