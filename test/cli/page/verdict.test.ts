/** The first line of reports. */
import { describe, expect, it } from 'vitest';
import { errorVerdict, planVerdict, rankingVerdict, searchVerdict } from '../../../cli/report/verdict.ts';
import type { Trial } from '../../../index.ts';

const baselines = (dampedMeans: number, mean: number) => ({
  dampedMeans: { rmse: dampedMeans, mae: 1 },
  mean: { rmse: mean, mae: 1 },
});

describe('the verdict on errors', () => {
  it('names the part by which the model is better than means', () => {
    expect(
      errorVerdict(0.9, baselines(1, 1.2), { pairs: 2000, coldPairs: 0, kind: 'held-out ratings' }),
    ).toEqual({
      tone: 'good',
      text: '10.0 % better than means of users and items',
      detail: 'RMSE 0.9000; the mean 1.2000, damped means 1.0000; on 2,000 held-out ratings.',
    });
  });

  it('gives the number of known pairs next to all of them', () => {
    const measured = { pairs: 10_084, coldPairs: 8794, kind: 'held-out ratings' } as const;
    expect(errorVerdict(0.9, baselines(1, 1.2), measured).detail).toMatch(
      /; on 1,290 of 10,084 held-out ratings\.$/,
    );
    expect(errorVerdict(0.9, undefined, measured).detail).toBe('1,290 of 10,084 pairs.');
  });

  it('says that the model is worse, or no better', () => {
    expect(
      errorVerdict(1.1, baselines(1, 1.2), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }),
    ).toMatchObject({ tone: 'bad', text: '10.0 % worse than means of users and items' });
    expect(
      errorVerdict(1.0001, baselines(1, 1.2), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }),
    ).toMatchObject({ tone: 'bad', text: 'No better than means of users and items' });
  });

  it('compares with the better one of the means', () => {
    expect(
      errorVerdict(1.1, baselines(1.3, 1), { pairs: 10, coldPairs: 0, kind: 'held-out ratings' }).text,
    ).toBe('10.0 % worse than the mean rating');
  });

  it('compares with nothing where means are absent or without error', () => {
    for (const means of [undefined, baselines(0, 0)])
      expect(errorVerdict(0.5, means, { pairs: 3, coldPairs: 0, kind: 'held-out ratings' })).toMatchObject({
        tone: 'plain',
        text: 'RMSE 0.5000 on held-out ratings',
      });
  });
});

describe('the verdict on rankings', () => {
  const metrics = { 'recall@10': 0.3, 'ndcg@10': 0.2 };

  it('compares NDCG with popularity', () => {
    expect(rankingVerdict(metrics, { 'recall@10': 0.1, 'ndcg@10': 0.1 }, 1500)).toEqual({
      tone: 'good',
      text: '2.00 times as good as popularity',
      detail: 'ndcg@10 0.2000; the most popular items for everyone 0.1000; over 1,500 users.',
    });
    expect(rankingVerdict(metrics, { 'recall@10': 0.1, 'ndcg@10': 0.4 }, 2)).toMatchObject({
      tone: 'bad',
      text: 'Worse than popularity: 0.50 times as good',
    });
    expect(rankingVerdict(metrics, metrics, 2)).toMatchObject({
      tone: 'bad',
      text: 'No better than popularity',
    });
    expect(rankingVerdict(metrics, { 'ndcg@10': 0 }, 2).text).toBe('Better than popularity');
    expect(rankingVerdict(metrics, { 'ndcg@10': 0.01 }, 2).text).toBe('20.0 times as good as popularity');
  });

  it('compares with nothing without popularity or users', () => {
    expect(rankingVerdict(metrics, undefined, 2)).toMatchObject({ tone: 'plain', text: 'ndcg@10 0.2000' });
    expect(rankingVerdict({}, {}, 0).text).toContain('no user is left');
    expect(rankingVerdict({ 'ndcg@10': Number.NaN }, {}, 0).text).toContain('no user is left');
  });
});

describe('the verdict on a search and a plan', () => {
  it('names the best trial', () => {
    const best = {
      number: 3,
      params: { rank: 8 },
      value: 0.9,
      iterations: 10,
      seconds: 1,
      baselines: baselines(1, 1.2),
    } as unknown as Trial;
    expect(searchVerdict(best, 12, 'rmse')).toEqual({
      tone: 'good',
      text: 'Trial 3 is the best of 12: rmse 0.9000',
      detail: '10.0 % better than means of users and items (1.0000).',
    });
    expect(searchVerdict(best, 12, 'ndcg@20').tone).toBe('plain');
    const ranking = {
      metrics: { 'ndcg@10': 0.1 },
      popularity: { 'ndcg@10': 0.2 },
      users: 30,
    } as unknown as NonNullable<Trial['ranking']>;
    expect(searchVerdict({ ...best, ranking }, 12, 'ndcg@20')).toMatchObject({
      tone: 'bad',
      detail: expect.stringMatching(
        /^Worse than popularity: 0\.50 times as good: ndcg@10 0\.1000; .* over 30 users\.$/,
      ),
    });
  });

  it('names the memory of each place', () => {
    expect(planVerdict({ host: 2048, cpu: 1024 }).text).toBe(
      'It fits: at most 2.0 KiB at host, 1.0 KiB at cpu',
    );
  });
});
