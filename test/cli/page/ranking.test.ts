import { describe, expect, it } from 'vitest';
import { rankingSection } from '../../../cli/page/sections/ranking.ts';
import type { RankingEvaluation } from '../../../index.ts';

const counts = {
  pairs: 4,
  coldUsers: 0,
  coldPairs: 0,
  leakedPairs: 0,
  repeatedPairs: 0,
  irrelevantPairs: 0,
  unknownExcluded: 0,
};
const found = (metrics: Record<string, number>, users: number): RankingEvaluation => ({
  ...counts,
  metrics,
  intervals: {},
  baselines: {},
  users,
  availableUsers: users,
  warnings: [],
});

describe('rankings of a page', () => {
  it('have no numbers where no user is left to rank', () => {
    const { text, charts, tables } = rankingSection(found({ 'ndcg@10': Number.NaN }, 0));
    expect([text, charts, tables]).toEqual([
      'No user is left to rank, so there are no metrics.',
      undefined,
      undefined,
    ]);
  });

  it('say that a metric has no value', () => {
    const { tables } = rankingSection(found({ 'ndcg@10': 0.5, auc: Number.NaN }, 2));
    expect(tables?.[0].rows).toEqual([
      ['ndcg@10', '0.5000', ''],
      ['auc', 'none', ''],
    ]);
  });
});
