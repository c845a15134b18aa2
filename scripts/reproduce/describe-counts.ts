import type { SplitCounts } from './check-split.ts';

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
