import { describe, expect, it } from 'vitest';
import {
  ALS,
  type Dataset,
  type Model,
  type ProgressEvent,
  type RankingOptions,
  SGD,
} from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';

/** Items of low ids are taken more often; some pairs are repeated, and a few ratings are 0. */
function plays(seed: number, users: number, items: number, count: number): Triple[] {
  const rows = randomRatings(seed, users, items, count).map((row, i) => ({
    ...row,
    item: Math.floor(row.item ** 2 / items),
    rating: i % 50 === 0 ? 0 : 1 + (i % 3),
  }));
  return [...rows, ...rows.slice(0, 40)];
}

const names = ['ndcg@10', 'recall@20', 'hit-rate@10', 'coverage@10'];

/** The metrics of `evaluateRanking`, by the same names. */
async function evaluated(model: Model, test: Dataset, exclude: Dataset, options: RankingOptions = {}) {
  const found = await model.evaluateRanking(test, {
    k: [10, 20],
    exclude,
    metrics: ['ndcg', 'recall', 'hit-rate', 'coverage'],
    resamples: 0,
    ...options,
  });
  const chosen = (values: Readonly<Record<string, number>>) =>
    Object.fromEntries(names.map((name) => [name, values[name]]));
  return { ...found, metrics: chosen(found.metrics), popularity: chosen(found.baselines.popularity!) };
}

const session = await cpuSession();

describe('rankings of held-out pairs', () => {
  it.each([
    ['implicit ALS', 80, 50, () => new ALS({ rank: 4, maxIter: 3, implicitPrefs: true })],
    ['SGD with more items', 40, 90, () => new SGD({ rank: 3, maxIter: 2, schedule: 'wavefront' })],
  ] as const)(
    'of %s are those that evaluateRanking finds, for all users and for some',
    async (_, users, items, estimator) => {
      const [train, test] = session
        .from(ratingBatches(plays(4, users, items, 1500)))
        .randomSplit([0.8, 0.2], { seed: 3 });
      for (const rankUsers of ['all', 11] as const) {
        const { training, ...model } = await fitted(estimator(), train, test, { ranking: true, rankUsers });
        const found = await evaluated(model.of, test, train, { rankUsers });
        const { metrics, popularity, ...counts } = training.ranking!;
        expect(Object.keys(metrics)).toEqual(names);
        for (const name of names) {
          expect(metrics[name]).toBeCloseTo(found.metrics[name], 12);
          expect(popularity[name]).toBeCloseTo(found.popularity[name], 12);
        }
        expect(counts).toEqual({
          users: found.users,
          availableUsers: found.availableUsers,
          leakedPairs: found.leakedPairs,
          repeatedPairs: found.repeatedPairs,
        });
        expect(found.users).toBe(rankUsers === 'all' ? found.availableUsers : 11);
        expect(found.availableUsers).toBeGreaterThan(11);
      }
    },
  );
});

async function fitted(
  estimator: ALS | SGD,
  train: Dataset,
  validation: Dataset,
  options: { readonly ranking?: boolean; readonly rankUsers?: number | 'all' } = {},
) {
  const events: ProgressEvent[] = [];
  const of = await estimator.fit(train, { validation, ...options, onEvent: (event) => events.push(event) });
  return {
    of,
    training: of.training!,
    warnings: events.flatMap((event) => (event.type === 'warning' ? [event] : [])),
  };
}

describe('the ranking of held-out pairs', () => {
  const rows = plays(6, 90, 60, 2000);
  const [train, test] = session.from(ratingBatches(rows)).randomSplit([0.8, 0.2], { seed: 3 });

  it('comes with implicit data, and with others where it is asked for', async () => {
    const implicit = () => new ALS({ rank: 2, maxIter: 1, implicitPrefs: true });
    expect((await fitted(implicit(), train, test)).training.ranking).toBeDefined();
    expect((await fitted(implicit(), train, test, { ranking: false })).training.ranking).toBeUndefined();
    const { ranking, seconds } = (await fitted(new ALS({ rank: 2, maxIter: 1 }), train, test)).training;
    expect(ranking).toBeUndefined();
    expect(seconds).not.toHaveProperty('ranking');
    expect((await implicit().fit(train)).training!.ranking).toBeUndefined();
  });

  it('draws the same users for any order of rows, and others for another seed', async () => {
    const [again] = session.from(ratingBatches(shuffled(rows, 9), 300)).randomSplit([0.8, 0.2], { seed: 3 });
    const [, other] = session
      .from(ratingBatches(shuffled(rows, 10), 700))
      .randomSplit([0.8, 0.2], { seed: 3 });
    const of = async (trained: Dataset, held: Dataset, seed: number) =>
      (
        await fitted(new ALS({ rank: 2, maxIter: 2, implicitPrefs: true, seed }), trained, held, {
          rankUsers: 9,
        })
      ).training.ranking!;
    const first = await of(train, test, 1);
    expect(first.users).toBe(9);
    expect(await of(again, other, 1)).toEqual(first);
    expect((await of(train, test, 2)).popularity).not.toEqual(first.popularity);
  });

  it('warns of a model that ranks no better than popularity, with advice', async () => {
    const { training, warnings } = await fitted(
      new ALS({ rank: 2, maxIter: 1, implicitPrefs: true, alpha: 1000, regParam: 0 }),
      train,
      test,
    );
    const { metrics, popularity } = training.ranking!;
    expect(metrics['ndcg@10']).toBeLessThanOrEqual(popularity['ndcg@10']);
    const text = expect.stringMatching(
      /by popularity.* Try other values of the option weight \(now .*\), the option alpha \(now 1000\), .*search/,
    ) as string;
    expect(training.warnings).toContainEqual({ code: 'no-better-than-popularity', text });
    expect(warnings).toContainEqual({ type: 'warning', code: 'no-better-than-popularity', text });
  });

  it('stops early by a metric over as many users', async () => {
    // Ratings of 0 are not trained on, and are among the pairs to exclude of the evaluation.
    const [positive, held] = session
      .from(ratingBatches(rows.filter(({ rating }) => rating > 0)))
      .randomSplit([0.8, 0.2], { seed: 3 });
    const model = await new ALS({
      rank: 3,
      maxIter: 6,
      implicitPrefs: true,
      seed: 5,
      earlyStop: 6,
      earlyStopMetric: 'ndcg@20',
    }).fit(positive, { validation: held, rankUsers: 8 });
    const { iterations, bestIteration } = model.training!;
    const found = await model.evaluateRanking(held, {
      k: 20,
      exclude: positive,
      metrics: ['ndcg'],
      resamples: 0,
      rankUsers: 8,
      seed: 5,
    });
    expect(found.users).toBe(8);
    expect(iterations[bestIteration - 1].testMetrics!['ndcg@20']).toBeCloseTo(found.metrics['ndcg@20'], 12);
  });

  it('refuses options that cannot be used', async () => {
    const als = new ALS({ rank: 2, maxIter: 1 });
    await expect(als.fit(train, { ranking: true })).rejects.toThrow('ranking needs a validation set');
    await expect(als.fit(train, { validation: test, rankUsers: 0 })).rejects.toThrow(
      'rankUsers must be all or a whole number of 1 or more, got 0',
    );
    await expect(als.fit(train, { validation: test, rankUsers: 'some' as 'all' })).rejects.toThrow(
      'got "some"',
    );
  });
});

describe('an evaluation of rankings of many users', () => {
  it('warns of a model that popularity beats, and of no other', async () => {
    const rows = plays(8, 60, 40, 1200);
    const [train, test] = session.from(ratingBatches(rows)).randomSplit([0.8, 0.2], { seed: 3 });
    const events: ProgressEvent[] = [];
    const model = await new ALS({ rank: 2, maxIter: 1 }).fit(train);
    const found = await model.evaluateRanking(test, {
      k: 5,
      exclude: train,
      metrics: ['recall'],
      onEvent: (event) => events.push(event),
    });
    const warning = {
      code: 'no-better-than-popularity',
      text: expect.stringMatching(
        /recall@5.*It was trained to predict ratings: for rankings train ALS with implicitPrefs: true/,
      ) as string,
    };
    expect(found.warnings).toEqual([warning]);
    expect(events).toContainEqual({ type: 'warning', ...warning });
    expect(
      (await model.evaluateRanking(test, { k: 5, exclude: train, metrics: ['coverage'] })).warnings,
    ).toEqual([]);
    // All of a user's test items in front.
    expect((await model.evaluateRanking(train, { k: 5 })).warnings).toMatchObject([
      { code: 'nothing-excluded' },
    ]);
  });
});
