import { describe, expect, it } from 'vitest';
import { ALS, type ProgressEvent, type RankingOptions } from '../../../index.ts';
import { randomRatings } from '../../support/ratings.ts';
import { referenceMetrics } from '../../support/reference/ranking.ts';
import { type Case, close, modelOf, randomCase, rowsOf } from './ranking-cases.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

describe('an evaluation of rankings', () => {
  const evaluated = async (one: Case, options: RankingOptions = {}) => {
    const events: ProgressEvent[] = [];
    const result = await modelOf(session, one).evaluateRanking(rowsOf(session, one.test), {
      k: 5,
      exclude: rowsOf(session, one.seen),
      ...options,
      onEvent: (event) => events.push(event),
    });
    return {
      result,
      warnings: events.flatMap((event) => (event.type === 'warning' ? [event.text] : [])),
      notes: events.flatMap((event) => (event.type === 'note' ? [event.text] : [])),
    };
  };

  it('counts cold, leaked, repeated and unknown pairs', async () => {
    const one = randomCase(11, 9, 20, 'drop');
    const leaked = one.test.filter(({ user, item }) =>
      one.seen.some((row) => row.user === user && row.item === item),
    ).length;
    const cold = one.test.filter(({ user, item }) => user < 0 || item >= 100).length;
    const { result, warnings, notes } = await evaluated({
      ...one,
      seen: [...one.seen, { user: 999, item: 0, rating: 1 }, { user: 0, item: 9999, rating: 1 }],
      test: [...one.test, ...one.test.filter(({ user, item }) => user === 10 && item < 100)],
    });
    const again = one.test.filter(({ user, item }) => user === 10 && item < 100);
    const leakedAgain = again.filter(({ user, item }) =>
      one.seen.some((row) => row.user === user && row.item === item),
    ).length;
    expect(leaked).toBeGreaterThan(0);
    expect(result).toMatchObject({
      pairs: one.test.length + again.length,
      coldPairs: cold,
      coldUsers: one.problem.strangers,
      coldItems: new Set(one.test.filter(({ item }) => item >= 100).map(({ item }) => item)).size,
      unknownExcluded: 2,
    });
    expect(result.leakedPairs + result.repeatedPairs).toBe(leaked + again.length);
    expect(result.leakedPairs).toBeGreaterThanOrEqual(leaked);
    expect(result.leakedPairs).toBeLessThanOrEqual(leaked + leakedAgain);
    expect(warnings.join()).toMatch(
      /test pairs are among the excluded ones too: test data has leaked into training/,
    );
    expect(notes.join()).toMatch(/2 excluded pairs have a user or an item that the model does not know/);
  });

  it.each([21, 22, 23])(
    'measures pairs of users and items without ratings apart, as if they were all (case %d)',
    async (seed) => {
      const one = randomCase(seed, 12, 30, 'drop');
      const [userCounts, itemCounts] = [
        Uint32Array.from({ length: 12 }, (_, u) => (u % 5 === 1 ? 0 : 3)),
        Uint32Array.from({ length: 30 }, (_, v) => (v % 3 === 0 ? 0 : 4)),
      ];
      const model = modelOf(session, one, { userCounts, itemCounts });
      const options = { k: 5, exclude: rowsOf(session, one.seen), resamples: 0 };
      const found = await model.evaluateRanking(rowsOf(session, one.test), options);
      let pairs = 0;
      for (const part of ['warm', 'cold'] as const) {
        const test = one.problem.test.map(
          (own, user) =>
            new Set(
              [...own].filter(
                (item) =>
                  item < 30 && (userCounts[user] === 0 || itemCounts[item] === 0) === (part === 'cold'),
              ),
            ),
        );
        const { metrics, users, pairs: own } = found[part]!;
        const {
          'coverage@5': _,
          'novelty@5': __,
          ...expected
        } = referenceMetrics({ ...one.problem, test, strangers: 0 }, 5);
        close(metrics, expected, 1e-9);
        expect(Object.keys(metrics)).toEqual(expect.arrayContaining(Object.keys(expected)));
        expect(users).toBe(
          test.filter((items, user) => [...items].some((item) => !one.problem.seen[user].has(item))).length,
        );
        pairs += own;
      }
      expect(pairs).toBe(found.pairs - found.coldPairs - found.leakedPairs - found.repeatedPairs);
      const drawn = await model.evaluateRanking(rowsOf(session, one.test), { ...options, rankUsers: 4 });
      expect(drawn.cold!.users + drawn.warm!.users).toBeLessThanOrEqual(8);
      expect((await evaluated(one)).result).not.toHaveProperty('cold');
    },
  );

  it('has intervals around the means, the same for a seed', async () => {
    const one = randomCase(13, 12, 30, 'drop');
    const [first, again, other] = [
      await evaluated(one),
      await evaluated(one),
      await evaluated(one, { seed: 9 }),
    ];
    expect(again.result.intervals).toEqual(first.result.intervals);
    expect(other.result.intervals).not.toEqual(first.result.intervals);
    expect(Object.keys(first.result.intervals)).toEqual([
      'precision@5',
      'recall@5',
      'recall-min@5',
      'ndcg@5',
      'map@5',
      'hit-rate@5',
      'mrr',
      'auc',
    ]);
    for (const [name, [low, high]] of Object.entries(first.result.intervals)) {
      expect(low).toBeLessThan(first.result.metrics[name]);
      expect(high).toBeGreaterThan(first.result.metrics[name]);
    }
    expect((await evaluated(one, { resamples: 0 })).result.intervals).toEqual({});
  });

  it('warns where nothing is excluded, and where the model was trained to predict ratings', async () => {
    const one = randomCase(14, 6, 20, 'drop');
    const { result, warnings } = await evaluated(one, { exclude: undefined });
    expect(warnings).toEqual([expect.stringMatching(/no pairs are excluded/)]);
    expect(result.baselines).toEqual({});
    expect(result.warnings).toEqual([{ code: 'nothing-excluded', text: warnings[0] }]);
    expect((await evaluated(one)).result.warnings.map(({ code }) => code)).not.toContain('nothing-excluded');
    const rows = randomRatings(3, 30, 20, 300);
    const model = await new ALS({ rank: 2, maxIter: 2 }).fit(rowsOf(session, rows));
    const events: ProgressEvent[] = [];
    await model.evaluateRanking(rowsOf(session, [{ user: rows[0].user, item: rows[0].item, rating: 1 }]), {
      onEvent: (event) => events.push(event),
    });
    expect(events).toContainEqual({
      type: 'warning',
      text: expect.stringMatching(/trained to predict ratings \(RMSE\), not to rank/),
    });
  });

  it('refuses an empty test set, and has no metrics where no user is known', async () => {
    const one = randomCase(15, 6, 20, 'drop');
    await expect(evaluated({ ...one, test: [] })).rejects.toThrow('there are no pairs to evaluate');
    const { result } = await evaluated({ ...one, test: [{ user: -5, item: 0, rating: 1 }] });
    expect(result).toMatchObject({ users: 0, coldUsers: 1, pairs: 1, coldPairs: 1 });
    expect(result.metrics['ndcg@5']).toBeNaN();
    const misses = await evaluated(
      { ...one, test: [{ user: -5, item: 0, rating: 1 }] },
      { coldPairs: 'miss' },
    );
    expect(misses.result).toMatchObject({ users: 1, metrics: { 'ndcg@5': 0, mrr: 0, auc: 0 } });
  });

  it('has metrics at a k of their own, next to those at each k', async () => {
    const one = randomCase(16, 8, 20, 'drop');
    const each = await evaluated(one, { k: [3, 5], metrics: ['ndcg', 'recall', 'coverage', 'mrr'] });
    const { result } = await evaluated(one, {
      k: 3,
      metrics: ['ndcg', 'ndcg@3', 'mrr', 'recall@5', 'coverage@5'],
    });
    const names = ['ndcg@3', 'mrr', 'recall@5', 'coverage@5'];
    expect(Object.keys(result.metrics)).toEqual(names);
    expect(result.metrics).toEqual(
      Object.fromEntries(names.map((name) => [name, each.result.metrics[name]])),
    );
  });

  it.each([
    [{ k: 0 }, /k must be a whole number from 1 to 10,000, got 0/],
    [{ k: [] }, /got none/],
    [{ metrics: ['ndgc'] }, /metrics must be a list of ranking metrics, got "ndgc"/],
    [{ metrics: ['mrr@5'] }, /got "mrr@5"/],
    [{ metrics: ['ndcg@0'] }, /got "ndcg@0"/],
    [{ coldPairs: 'skip' }, /coldPairs must be drop or miss/],
    [{ resamples: -1 }, /resamples must be a whole number/],
    [{ minRating: NaN }, /minRating must be a number/],
    [{ top: 3 }, /unknown option top of evaluateRanking/],
  ])('refuses the options %j', async (options, message) => {
    const one = randomCase(16, 6, 20, 'drop');
    await expect(
      modelOf(session, one).evaluateRanking(rowsOf(session, one.test), options as unknown as RankingOptions),
    ).rejects.toThrow(message);
  });
});
