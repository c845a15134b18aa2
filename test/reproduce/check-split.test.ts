import { describe, expect, it } from 'vitest';
import { countSplit } from '../../scripts/reproduce/split.ts';
import { cpuSession } from '../support/cpu-session.ts';

const session = await cpuSession({ workers: 1 });

const pairs = (...rows: readonly (readonly [number, number])[]) =>
  session.fromRows(rows.map(([user, item]) => ({ user, item })));

describe('the counts of a split', () => {
  it('are 0 in a clean one', async () => {
    expect(await countSplit(pairs([0, 1], [1, 2]), pairs([0, 2]))).toEqual({
      train: 2,
      test: 1,
      candidates: 0,
      users: 2,
      items: 2,
      leaked: 0,
      repeatedTrain: 0,
      repeatedTest: 0,
      repeatedCandidates: 0,
      untrainedUsers: 0,
      untrainedItems: 0,
      positiveCandidates: 0,
      seenCandidates: 0,
    });
  });

  it('find what is wrong, in any order of rows', async () => {
    const counts = await countSplit(
      pairs([3, 9], [0, 1], [3, 9], [1, 5]),
      pairs([1, 5], [7, 1], [0, 4], [0, 4], [7, 9]),
      pairs([0, 4], [0, 1], [7, 5], [7, 5], [7, 1]),
    );
    expect(counts).toMatchObject({
      users: 4,
      items: 4,
      leaked: 1,
      repeatedTrain: 1,
      repeatedTest: 1,
      untrainedUsers: 1,
      untrainedItems: 2,
      repeatedCandidates: 1,
      positiveCandidates: 2,
      seenCandidates: 1,
    });
  });
});
