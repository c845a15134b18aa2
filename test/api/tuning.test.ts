import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset, Session, SGD, TrainValidationSplit, type Trial } from '../../index.ts';
import type { TrialParams } from '../../api/validation/tuning/search-space.ts';
import { validationSeed } from '../../api/validation/tuning/train-validation-split.ts';
import { isDeep } from '../support/deep.ts';
import { ratingsBatch } from '../support/tuning-ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

let ratings: Dataset;

/** Passes over the source. */
let reads = 0;

const session = await cpuSession();
beforeAll(async () => {
  const batch = ratingsBatch(60, 40, 1500);
  const source = {
    [Symbol.asyncIterator]: async function* () {
      reads++;
      yield batch;
    },
  };
  ratings = session.from(source, batch.schema, { replayable: true });
});

const als = (params: TrialParams) => new ALS({ maxIter: 6, ...params });

const values = (trials: readonly Trial[]) =>
  trials.map(({ number, params, value, iterations }) => [number, params, value, iterations]);

describe('TrainValidationSplit', () => {
  it('has the values of separate fits, and loads the ratings once', async () => {
    reads = 0;
    const tuner = new TrainValidationSplit({ estimator: als, grid: [{ rank: 2 }, { rank: 4 }] });
    const { trials, best, model } = await tuner.fit(ratings);
    // Three reads: all ratings, their validation part, and all ratings again for the final model.
    expect(reads).toBe(3);
    const [train, validation] = ratings.randomSplit([0.9, 0.1], { seed: validationSeed(0) });
    const alone = await Promise.all([2, 4].map((rank) => als({ rank }).fit(train, { validation })));
    expect(trials.map(({ value }) => value)).toEqual(
      alone.map(({ training }) => training?.iterations.at(-1)?.testRmse),
    );
    expect(best.value).toBe(Math.min(...trials.map(({ value }) => value)));
    expect(model.training?.ratings).toBe(1500);
    expect(model.metadata.tuning).toMatchObject({
      metric: 'rmse',
      best: best.number,
      trials: [{ number: 1 }, { number: 2 }],
    });
  });

  it('measures trials of ALS after the first iteration and the last alone, unless they may end early', async () => {
    const measuredBy = async (params: TrialParams) => {
      const seen: number[][] = [];
      const estimator = (made: TrialParams) => {
        const own = als({ ...params, ...made });
        const fit: ALS['fit'] = async (...args) => {
          const model = await ALS.prototype.fit.apply(own, args);
          seen.push((model.training?.iterations ?? []).map(({ iteration }) => iteration));
          return model;
        };
        return Object.assign(own, { fit });
      };
      const { trials } = await new TrainValidationSplit({ estimator, grid: [{ rank: 2 }] }).fit(ratings);
      expect(trials[0].iterations).toBe(6);
      return seen[0];
    };
    expect(await measuredBy({})).toEqual([1, 6]);
    expect(await measuredBy({ earlyStop: 6 })).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('gives the same with several trials at the same time, and after an interruption', async () => {
    const options = { estimator: als, space: { rank: [2, 3], regParam: [0.3, 0.1, 0.03] }, warmStart: true };
    const whole = await new TrainValidationSplit(options).fit(ratings);
    expect(whole.trials.filter(({ warm }) => warm).map(({ iterations }) => iterations)).toEqual([3, 3, 3, 3]);
    const together = await new TrainValidationSplit({ ...options, parallelism: 3 }).fit(ratings);
    expect(values(together.trials)).toEqual(values(whole.trials));
    const ended: Trial[] = [];
    const done = whole.trials.slice(0, 4);
    const resumed = await new TrainValidationSplit(options).fit(ratings, {
      done,
      onTrial: (trial) => void ended.push(trial),
    });
    expect(values(resumed.trials)).toEqual(values(whole.trials));
    // The first chain was complete. The second starts again, and reports only trials that were not known.
    expect(ended.map(({ number }) => number).sort()).toEqual([5, 6]);
  });

  it('halves: who stays has the value of an uninterrupted fit', async () => {
    const options = {
      estimator: als,
      space: { rank: { from: 2, to: 12, whole: true }, regParam: { from: 0.01, to: 1, scale: 'log' } },
      search: 'halving',
      trials: 9,
    } as const;
    const { trials, best } = await new TrainValidationSplit(options).fit(ratings);
    expect(trials.filter(({ stopped }) => !stopped)).toHaveLength(3);
    expect(trials.map(({ iterations }) => iterations).sort()).toEqual([2, 2, 2, 2, 2, 2, 6, 6, 6]);
    const [train, validation] = ratings.randomSplit([0.9, 0.1], { seed: validationSeed(0) });
    const alone = await als(best.params).fit(train, { validation });
    expect(best.value).toBeCloseTo(alone.training?.iterations.at(-1)?.testRmse ?? Number.NaN, 6);
    const resumed = await new TrainValidationSplit(options).fit(ratings, {
      done: trials.filter(({ stopped }) => stopped),
    });
    expect(resumed.trials.map(({ number, stopped }) => [number, stopped])).toEqual(
      trials.map(({ number, stopped }) => [number, stopped]),
    );
    resumed.trials.forEach(({ value }, at) => expect(value).toBeCloseTo(trials[at].value, 6));
  });

  it('compares algorithms, by rankings of implicit data too', async () => {
    const both = await new TrainValidationSplit({
      estimator: ({ algorithm, ...params }) =>
        algorithm === 'sgd' ? new SGD({ ...params, maxIter: 4 }) : als(params),
      space: { algorithm: ['als', 'sgd'], rank: [2, 4] },
    }).fit(ratings);
    expect(both.trials.every(({ value }) => value > 0 && value < 2)).toBe(true);
    const implicit = await new TrainValidationSplit({
      estimator: (params) => new ALS({ implicitPrefs: true, maxIter: 3, ...params }),
      space: { alpha: [1, 10], rank: [4] },
      metric: 'ndcg@5',
    }).fit(ratings);
    expect(implicit.best.value).toBe(Math.max(...implicit.trials.map(({ value }) => value)));
    expect(implicit.best.value).toBeGreaterThan(0);
  });

  it('marks a trial that fails, and goes on', async () => {
    const notes: string[] = [];
    const estimator = ({ learningRate }: TrialParams) =>
      new SGD({ learningRate: learningRate as number, decay: 0, maxIter: 3, rank: 4, regParam: 0 });
    const { trials, best } = await new TrainValidationSplit({
      estimator,
      space: { learningRate: [1e30, 0.05] },
    }).fit(ratings, { onEvent: (event) => void (event.type === 'note' && notes.push(event.text)) });
    expect(trials[0]).toMatchObject({
      value: Number.NaN,
      failure: expect.stringMatching(/loss|diverg|finite/),
    });
    expect(best.number).toBe(2);
    expect(notes.filter((text) => /^trial \d of 2, learningRate/.test(text))).toHaveLength(2);
    await expect(
      new TrainValidationSplit({ estimator, space: { learningRate: [1e30] } }).fit(ratings),
    ).rejects.toThrow(/epoch 1: the loss/);
  });

  it('marks a trial whose factors do not fit, and goes on', async () => {
    await using small = await Session.create({ device: 'cpu', workers: 1, memoryBudget: 2 ** 30 });
    const many = small.from([ratingsBatch(400_000, 40, 400_000)]);
    const { trials, best } = await new TrainValidationSplit({
      estimator: (params) => als({ maxIter: 1, ...params }),
      grid: [{ rank: 2 }, { rank: 512 }],
    }).fit(many);
    expect(trials[1]).toMatchObject({
      value: Number.NaN,
      failure: expect.stringMatching(/but the memory budget is 1\.0 GiB/),
    });
    expect(best.params).toEqual({ rank: 2 });
  });

  it('ranks the validation ratings by the best trial, as a fit of its own does', async () => {
    const implicit = (params: TrialParams) => new ALS({ maxIter: 3, implicitPrefs: true, ...params });
    const codes: (string | undefined)[] = [];
    const space = { rank: [2, 6], alpha: [0.1, 5, 900] };
    for (const search of isDeep ? (['grid', 'halving'] as const) : (['halving'] as const)) {
      const { best } = await new TrainValidationSplit({
        estimator: implicit,
        space,
        search,
        metric: 'ndcg@20',
        rankUsers: 25,
      }).fit(ratings, { onEvent: (event) => void (event.type === 'warning' && codes.push(event.code)) });
      const [train, validation] = ratings.randomSplit([0.9, 0.1], { seed: validationSeed(0) });
      const { training } = await implicit({ ...best.params, maxIter: best.bestIteration }).fit(train, {
        validation,
        rankUsers: 25,
      });
      expect(best.ranking).toEqual(training?.ranking);
      expect(best.ranking?.users).toBe(25);
      const { metrics, popularity } = best.ranking!;
      expect(codes.includes('no-better-than-popularity')).toBe(metrics['ndcg@10'] <= popularity['ndcg@10']);
      codes.length = 0;
    }
  });

  it('ranks for other trials where it is asked to, and goes on from trials that have ranked', async () => {
    const space = { rank: [2, 4] };
    expect(
      (await new TrainValidationSplit({ estimator: als, space }).fit(ratings)).best.ranking,
    ).toBeUndefined();
    const tuner = new TrainValidationSplit({ estimator: als, space, ranking: true });
    const whole = await tuner.fit(ratings);
    expect(whole.best.ranking?.users).toBeGreaterThan(10);
    const again = await tuner.fit(ratings, { done: JSON.parse(JSON.stringify(whole.trials)) as Trial[] });
    expect(again.best.ranking).toEqual(whole.best.ranking);
    expect(() => new TrainValidationSplit({ estimator: als, space, rankUsers: 0 })).toThrow(
      'rankUsers must be all or a whole number',
    );
  });

  it('fails with the reason where the validation ratings say nothing', async () => {
    const foreign = session.from([ratingsBatch(5, 5, 20, 1000)]);
    await expect(
      new TrainValidationSplit({ estimator: als, grid: [{ rank: 2 }] }).fit(ratings, { validation: foreign }),
    ).rejects.toThrow('rmse cannot be computed on the validation ratings');
  });

  it('trains the last model where trials end early, with the iterations of the best', async () => {
    const stopping = (params: TrialParams) => new ALS({ maxIter: 6, earlyStop: 1, ...params });
    const { best, model } = await new TrainValidationSplit({
      estimator: stopping,
      space: { rank: [2, 8] },
    }).fit(ratings);
    expect(model.training?.params).toMatchObject({ ...best.params, maxIter: best.bestIteration });
    const { best: overfitted } = await new TrainValidationSplit({
      estimator: stopping,
      grid: [{ rank: 8, regParam: 1e-6, regOffset: 0, maxIter: 40 }],
    }).fit(ratings);
    expect(overfitted.bestIteration).toBeLessThan(40);
    expect(overfitted.params.maxIter).toBe(overfitted.bestIteration);
  });

  it('ends trials at the same time with the first error', async () => {
    let told = 0;
    const run = new TrainValidationSplit({
      estimator: als,
      space: { rank: [2, 3, 4, 5, 6, 7] },
      parallelism: 2,
    }).fit(ratings, {
      onTrial: () => {
        told++;
        throw new Error('full');
      },
    });
    await expect(run).rejects.toThrow('full');
    const then = told;
    await als({ rank: 2 }).fit(ratings);
    expect(told).toBe(then);
    expect(told).toBeLessThan(3);
  });

  it('takes a fault of the ratings for one of all trials', async () => {
    const wrong = (params: TrialParams) => new ALS({ ratingCol: 'stars', ...params });
    await expect(
      new TrainValidationSplit({ estimator: wrong, space: { rank: [2, 3] } }).fit(ratings),
    ).rejects.toThrow(/stars/);
  });

  it('ends when it is cancelled, after the trials that have ended', async () => {
    const abort = new AbortController();
    const ended: Trial[] = [];
    const run = new TrainValidationSplit({ estimator: als, space: { rank: [2, 3, 4, 5] } }).fit(ratings, {
      signal: abort.signal,
      onTrial: (trial) => {
        ended.push(trial);
        abort.abort();
      },
    });
    await expect(run).rejects.toThrow(/cancel/i);
    expect(ended).toHaveLength(1);
  });
});
