/** Updates of models with new ratings. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type PhysicalPlan, stagesOf } from '../../../engine/plan/physical-plan.ts';
import { ALS, DataError, type Dataset, Model, SGD, UsageError } from '../../../index.ts';
import { joinKeys } from '../../../operators/ratings/ids/relabel.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { plantedRatings } from '../../support/planted.ts';
import { batchOf, ratingBatches, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { undamped } from '../../support/settings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { valuesOf as factors } from '../../support/model-values.ts';

const session = await cpuSession();

const folder = temporaryFolder();
const dataset = (rows: readonly Triple[]): Dataset => session.from(ratingBatches(rows, 611));
const idsOf = (batch: Model['userFactors']) => Array.from(batch.getChildAt(0)?.toArray() as Int32Array);

const rows = plantedRatings(41, 300, 200, 20_000);
const [test, fresh, old] = [rows.slice(0, 1500), rows.slice(1500, 3300), rows.slice(3300)];

const als = { ...undamped, rank: 4, regParam: 0.05, seed: 1 };
const base = await new ALS(als).fit(dataset(old));
const spark = await ALS.spark({ rank: 4 }).fit(dataset(old));

describe('a model updated with a tenth of new ratings', () => {
  it.each([
    ['ALS with biases', new ALS(als)],
    ['SGD', new SGD({ biases: false, rank: 8, regParam: 0.05, seed: 1, learningRate: 0.15, maxIter: 30 })],
  ])('predicts as well as one trained on all, within 0.01: %s', async (_, trainer) => {
    const { biases } = trainer.params;
    const base = await trainer.fit(dataset(old));
    const updated = await base.update(dataset(fresh));
    const all = await trainer.fit(dataset([...old, ...fresh]));
    const rmse = async (model: Model) => (await model.evaluate(dataset(test))).rmse;
    expect(await rmse(updated)).toBeLessThan((await rmse(all)) + 0.01);
    expect(updated.rank).toBe(base.rank);
    expect(updated.metadata).toMatchObject({
      algorithm: 'sgd',
      params: { biases, regParam: 0.05, maxIter: 2 },
      ratings: fresh.length,
    });
  });
});

describe('update', () => {
  it.each([0.5, 1e-4])(
    'takes small steps from nearly equal ratings, all 5 except one of %f less',
    async (less) => {
      const alike = Array.from({ length: 50 }, (_, at): Triple => ({
        user: 6 * at,
        item: at % 7,
        rating: at === 0 ? 5 - less : 5,
      }));
      const updated = await base.update(dataset(alike));
      const rmse = async (model: Model) => (await model.evaluate(dataset(test))).rmse;
      expect(await rmse(updated)).toBeLessThan((await rmse(base)) + 0.03);
    },
  );

  it('has the plan of planUpdate, with the ids of both counted', async () => {
    const news: Triple[] = [
      { user: -5, item: 3, rating: 5 },
      { user: 1, item: 1000, rating: 1 },
      { user: 1, item: 2, rating: 4 },
    ];
    const planned = await base.planUpdate(dataset(news), { validation: dataset(test), maxIter: 3 });
    const { training } = await base.update(dataset(news), { validation: dataset(test), maxIter: 3 });
    expect(planned.plan.problem).toMatchObject({
      'users m': base.userCount + 1,
      'items n': base.itemCount + 1,
      'ratings Nz': 3,
      'rank k': '4 and biases',
      epochs: 3,
      λ: 0,
    });
    const told = (plan: PhysicalPlan) =>
      stagesOf(plan).map(({ phase, stage: { name, kernel, reasons } }) => ({ phase, name, kernel, reasons }));
    expect(told(planned.plan)).toEqual(told(training!.plan));
    expect(String(planned)).toMatch(/continues from a model, by steps of λ = 0/);
    await expect(base.planUpdate(dataset(news), { rank: 3 } as object)).rejects.toThrow(UsageError);
  });

  it('takes in new users and items, and keeps those that have no new ratings as they are', async () => {
    const news: Triple[] = [
      ...Array.from({ length: 40 }, (_, item): Triple => ({ user: -5, item, rating: 5 })),
      ...Array.from({ length: 40 }, (_, user): Triple => ({ user, item: 1000, rating: 1 })),
    ];
    const updated = await base.update(dataset(news), { maxIter: 20, learningRate: 0.05 });
    expect([updated.userCount, updated.itemCount]).toEqual([base.userCount + 1, base.itemCount + 1]);
    expect(idsOf(updated.userFactors)).toEqual([-5, ...idsOf(base.userFactors)]);
    const untouched = (model: Model, user: number) => {
      const at = idsOf(model.userFactors).indexOf(user);
      return Array.from(factors(model.userFactors).subarray(at * 6, at * 6 + 6));
    };
    untouched(base, 299).forEach((value, k) => expect(untouched(updated, 299)[k]).toBeCloseTo(value, 4));
    const mean = async (user: number, item: number) => {
      for await (const batch of updated.predict(dataset([{ user, item, rating: 0 }])))
        return Number(batch.getChild('prediction')?.get(0));
      return Number.NaN;
    };
    expect(await mean(-5, 7)).toBeGreaterThan(3.4);
    expect(await mean(3, 1000)).toBeLessThan(2.6);
  });

  it('updates a model on disk, and one that Spark wrote, without metadata of its training', async () => {
    await base.save(join(folder, 'base'));
    const loaded = await Model.load(session, join(folder, 'base'));
    const options = { seed: 3 };
    const [one, two] = [
      await base.update(dataset(fresh), options),
      await loaded.update(dataset(fresh), options),
    ];
    expect(factors(two.itemFactors)).toEqual(factors(one.itemFactors));
    await two.save(join(folder, 'updated'));
    expect((await Model.load(session, join(folder, 'updated'))).userCount).toBe(two.userCount);
  });

  it('takes every parameter of SGD but those that the model fixes', async () => {
    const base = spark;
    const {
      rank: _rank,
      biases: _biases,
      regOffset: _offset,
      biasDamping: _damping,
      ...params
    } = new SGD({ maxIter: 1, precision: 'f32', earlyStop: 1, targetRmse: 0.1 }).params;
    const updated = await base.update(dataset(fresh), { ...params, validation: dataset(test) });
    expect(updated.metadata).toMatchObject({ params: { precision: 'f32', maxIter: 1 } });
  });

  it('refuses options that cannot be used', async () => {
    const base = spark;
    await expect(base.update(dataset(fresh), { rank: 5 } as never)).rejects.toThrow(
      /unknown option rank of update/,
    );
    await expect(base.update(dataset(fresh), { learningRate: -1 })).rejects.toThrow(UsageError);
    await expect(base.update([] as never)).rejects.toThrow(UsageError);
    const texts = session.from([
      batchOf({
        user: { type: 'utf8', values: ['a'] },
        item: { type: 'int32', values: [1] },
        rating: { type: 'float32', values: [1] },
      }),
    ]);
    await expect(base.update(texts)).rejects.toThrow(DataError);
    await expect(base.update(texts)).rejects.toThrow(
      /the model's user ids are int32, but ids of the new ratings are utf8/,
    );
    const positive = await ALS.spark({ rank: 4, nonnegative: true }).fit(dataset(old));
    await expect(positive.update(dataset(fresh))).rejects.toThrow(/nonnegative/);
  });

  it('joins ids of both, ascending, also int32 with int64', () => {
    const int32 = { type: 'int32', values: Int32Array.of(-3, 5, 9) } as const;
    const int64 = { type: 'int64', halves: Int32Array.of(-4, -1, 5, 0, 0, 1) } as const;
    const { keys, first, second } = joinKeys(int32, int64, 'user');
    // -4, -3, 5, 9, 2^32
    expect(keys).toEqual({ type: 'int64', halves: Int32Array.of(-4, -1, -3, -1, 5, 0, 9, 0, 0, 1) });
    expect([...first]).toEqual([1, 2, 3]);
    expect([...second]).toEqual([0, 2, 4]);
  });
});

describe('on real ratings', () => {
  const movielens = dataFolder('ml-latest-small');

  it.skipIf(!movielens)(
    'an ALS model updated with a tenth of ml-latest-small is within 0.01 of one trained on all',
    async () => {
      const [train, held] = session.read
        .parquet(join(movielens as string, 'ratings.parquet'))
        .randomSplit([0.9, 0.1], { seed: 2 });
      const [first, later] = train.randomSplit([0.9, 0.1], { seed: 5 });
      const options = { ...undamped, rank: 16, seed: 1 };
      const updated = await (await new ALS(options).fit(first)).update(later);
      const all = await new ALS(options).fit(train);
      expect((await updated.evaluate(held)).rmse).toBeLessThan((await all.evaluate(held)).rmse + 0.01);
    },
  );
});
