import type { Pairs, Split } from './formats.ts';

/** Counts of a split. Those after `items` are 0 in a clean one. */
interface SplitCounts {
  readonly train: number;
  readonly test: number;
  readonly candidates: number;
  readonly users: number;
  readonly items: number;
  /** Test pairs that are in train too. */
  readonly leaked: number;
  /** Pairs that repeat another of the same part. */
  readonly repeatedTrain: number;
  readonly repeatedTest: number;
  readonly repeatedCandidates: number;
  /** Users with test pairs and without a train pair. */
  readonly untrainedUsers: number;
  /** Test pairs whose item has no train pair. */
  readonly untrainedItems: number;
  /** Candidates that are test pairs, and candidates that are train pairs. */
  readonly positiveCandidates: number;
  readonly seenCandidates: number;
}

/** Compares the parts of a split with each other. */
export function countSplit({ train, test, candidates = none }: Split): SplitCounts {
  const parts = [train, test, candidates];
  const width = 1 + parts.reduce((most, { items }) => items.reduce((a, b) => Math.max(a, b), most), 0);
  const [trained, tested, listed] = parts.map((pairs) => sortedKeys(pairs, width));
  const users = new Set(train.users);
  const items = new Set(train.items);
  return {
    train: train.users.length,
    test: test.users.length,
    candidates: candidates.users.length,
    users: new Set([...users, ...test.users]).size,
    items: new Set([...items, ...test.items]).size,
    leaked: countIn(tested, trained),
    repeatedTrain: repeats(trained),
    repeatedTest: repeats(tested),
    repeatedCandidates: repeats(listed),
    untrainedUsers: [...new Set(test.users)].filter((user) => !users.has(user)).length,
    untrainedItems: test.items.filter((item) => !items.has(item)).length,
    positiveCandidates: countIn(listed, tested),
    seenCandidates: countIn(listed, trained),
  };
}

const none: Pairs = { users: new Int32Array(0), items: new Int32Array(0) };

/** Each pair as user · width + item, ascending; exact below 2^53. */
function sortedKeys({ users, items }: Pairs, width: number): Float64Array {
  return Float64Array.from(users, (user, k) => user * width + items[k]).sort();
}

function repeats(keys: Float64Array): number {
  return keys.reduce((count, key, k) => (k > 0 && key === keys[k - 1] ? count + 1 : count), 0);
}

/** Number of keys of the first list that the second one has. Both are ascending. */
function countIn(keys: Float64Array, others: Float64Array): number {
  let [count, place] = [0, 0];
  for (const key of keys) {
    while (place < others.length && others[place] < key) place++;
    if (others[place] === key) count++;
  }
  return count;
}

/** The sizes of a split, and a line for each count that is not 0. */
export function describeCounts(counts: SplitCounts, keepSeen: boolean): string[] {
  const { train, test, candidates, users, items } = counts;
  const listed = candidates === 0 ? '' : `, ${candidates} candidates`;
  const seen = keepSeen ? 'ranked' : 'left out';
  const noted: readonly (readonly [number, string])[] = [
    [counts.repeatedTrain, 'train pairs repeat another'],
    [counts.repeatedTest, 'test pairs repeat another; each counts once'],
    [counts.leaked, 'test pairs are in train'],
    [counts.untrainedUsers, 'test users have no train pair; they count as misses'],
    [counts.untrainedItems, 'test pairs are of items without a train pair; they count as misses'],
    [counts.repeatedCandidates, 'candidates repeat another; each is ranked once'],
    [counts.positiveCandidates, 'candidates are test pairs; they are ranked once, as positives'],
    [counts.seenCandidates, `candidates are train pairs; they are ${seen}`],
  ];
  return [
    `${users} users, ${items} items, ${train} train pairs, ${test} test pairs${listed}`,
    ...noted.filter(([count]) => count > 0).map(([count, text]) => `${count} ${text}`),
  ];
}
