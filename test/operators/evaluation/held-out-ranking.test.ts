import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ALS,
  type Dataset,
  type Model,
  type ProgressEvent,
  type RankingOptions,
  SGD,
  Session,
} from '../../../index.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
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

describe.each(['cpu', ...(noGpu ? [] : ['gpu'])] as const)('rankings of held-out pairs on a %s', (device) => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: device as 'cpu' | 'gpu', workers: 2 });
  });
  afterAll(() => session?.close());

  it.each([
    ['implicit ALS', 80, 50, () => new ALS({ rank: 4, maxIter: 3, implicitPrefs: true })] as const,
    ['ALS with biases', 80, 50, () => new ALS({ rank: 3, maxIter: 2 })] as const,
    [
      'SGD with more users',
      80,
      50,
      () => new SGD({ rank: 3, maxIter: 2, schedule: device === 'cpu' ? 'wavefront' : 'auto' }),
    ] as const,
    [
      'SGD with more items',
      40,
      90,
      () => new SGD({ rank: 3, maxIter: 2, schedule: device === 'cpu' ? 'wavefront' : 'auto' }),
    ] as const,
  ])(
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
          expect(metrics[name]).toBeCloseTo(found.metrics[name], device === 'cpu' ? 12 : 6);
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
  let session: Session;
  let [train, test]: Dataset[] = [];
  const rows = plays(6, 90, 60, 2000);
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
    [train, test] = session.from(ratingBatches(rows)).randomSplit([0.8, 0.2], { seed: 3 });
  });
  afterAll(() => session?.close());

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

  it('is measured apart from iterations, and both apart from the rest', async () => {
    const { iterations, seconds } = (
      await fitted(
        new ALS({ rank: 2, maxIter: 4, implicitPrefs: true, earlyStop: 4, earlyStopMetric: 'auc' }),
        train,
        test,
      )
    ).training;
    expect(seconds.validation).toBeGreaterThan(0);
    expect(seconds.ranking).toBeGreaterThan(0);
    expect(seconds.train).toBeGreaterThanOrEqual(
      seconds.validation! + iterations.reduce((sum, one) => sum + one.seconds, 0) - 1e-6,
    );
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

  it('leaves out a set of pairs that the model does not know', async () => {
    const strangers = session.from(ratingBatches([{ user: 9999, item: 9999, rating: 1 }]));
    const { training } = await fitted(
      new ALS({ rank: 2, maxIter: 1, implicitPrefs: true }),
      train,
      strangers,
    );
    expect(training.ranking).toBeUndefined();
    expect(training.warnings.map(({ code }) => code)).toContain('cold-test');
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
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
  });
  afterAll(() => session?.close());

  it('counts unknown users in proportion where they are misses', async () => {
    const [train, test] = session
      .from(ratingBatches(plays(7, 60, 40, 1200)))
      .randomSplit([0.8, 0.2], { seed: 3 });
    const strangers = Array.from({ length: 60 }, (_, k) => ({ user: 5000 + k, item: 0, rating: 1 }));
    const model = await new ALS({ rank: 2, maxIter: 2, implicitPrefs: true }).fit(train);
    const rows: Triple[] = [];
    for await (const batch of test) rows.push(...batch.toArray().map((row) => row.toJSON() as Triple));
    const both = session.from(ratingBatches([...rows, ...strangers]));
    const options: RankingOptions = {
      k: 5,
      exclude: train,
      metrics: ['hit-rate'],
      coldPairs: 'miss',
      resamples: 0,
    };
    const whole = await model.evaluateRanking(both, options);
    const some = await model.evaluateRanking(both, { ...options, rankUsers: 40 });
    expect(whole).toMatchObject({ users: whole.availableUsers });
    expect(some).toMatchObject({ users: 40, availableUsers: whole.users });
    // About half of the users are unknown: each of them is a miss.
    expect(some.metrics['hit-rate@5']).toBeLessThanOrEqual(0.55);
    expect(some.metrics['hit-rate@5']).toBeGreaterThan(0);
  });

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
