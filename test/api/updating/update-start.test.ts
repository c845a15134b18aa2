/**
 * The start of an update: new users and items start at their least-squares rows, the model's own rows are
 * unchanged.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Device } from '../../../engine/run/device.ts';
import { ALS, type Dataset, type Model, Session, SGD } from '../../../index.ts';
import { PRIOR_RATINGS } from '../../../operators/sgd/data/continue.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { isDeep } from '../../support/deep.ts';
import { secondDevice } from '../../support/devices/second-device.ts';
import { plantedRatings } from '../../support/planted.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { type FactorsById, referenceStart } from '../../support/reference/update.ts';
import { undamped } from '../../support/settings.ts';

const settings = (biases: boolean) => (biases ? undamped : { biases });

let session: Session;
beforeAll(async () => {
  session = await Session.create({ workers: 2, device: 'cpu' });
});
afterAll(() => session.close());

const dataset = (rows: readonly Triple[], on = session): Dataset => on.from(ratingBatches(rows, 611));

/** Steps so small that the factors stay where they begin. */
const standing = { maxIter: 1, learningRate: 1e-12 } as const;

function factorsOf(model: Model): FactorsById {
  const side = (batch: Model['userFactors']) => {
    const ids = Array.from(batch.getChildAt(0)?.toArray() as Int32Array);
    const values = batch.data.children[1].children[0].values as Float32Array;
    return new Map(
      ids.map((id, row) => [
        id,
        Array.from(values.subarray(row * model.features, (row + 1) * model.features)),
      ]),
    );
  };
  return { users: side(model.userFactors), items: side(model.itemFactors) };
}

/** The largest difference between two sets of factors, in units of the largest factor. */
function difference(one: FactorsById, other: FactorsById): number {
  let [largest, most] = [0, 0];
  for (const side of ['users', 'items'] as const) {
    expect([...one[side].keys()].sort()).toEqual([...other[side].keys()].sort());
    for (const [id, row] of one[side]) {
      row.forEach((value, k) => {
        const expected = other[side].get(id)?.[k] ?? Number.NaN;
        most = Math.max(most, Math.abs(expected));
        largest = Math.max(
          largest,
          Number.isNaN(expected) ? Number.POSITIVE_INFINITY : Math.abs(value - expected),
        );
      });
    }
  }
  return largest / most;
}

// Ids from 100 to 119 and items from 60 to 69 are new.
const planted = plantedRatings(11, 120, 70, 4000);
const old = planted.filter(({ user, item }) => user < 100 && item < 60);
const newUsers = planted.filter(({ user, item }) => user >= 100 && item < 60);
const newItems = planted.filter(({ user, item }) => user < 100 && item >= 60);
const bothNew = planted.filter(({ user, item }) => user >= 100 && item >= 60);
const known = plantedRatings(12, 100, 60, 300);
/**
 * A new user and a new item with only one rating, by and of each other; and a user whose only rating is of a
 * new item.
 */
const apart: readonly Triple[] = [{ user: 900, item: 800, rating: 5 }];
const oneOfEach: readonly Triple[] = [
  { user: 901, item: 60, rating: 1 },
  { user: 902, item: 3, rating: 4 },
];

describe.each([true, false])('an update, biases %s', (biases) => {
  const fit = (rows: readonly Triple[] = old, on = session) =>
    new ALS({ ...settings(biases), rank: 5, regParam: 0.07, seed: 2 }).fit(dataset(rows, on));

  it.each<[string, readonly Triple[]]>([
    ['new users', newUsers],
    ['new items', newItems],
    ['new users who rated new items', [...newUsers, ...newItems, ...bothNew, ...known]],
    ['new users and items that nothing known leads to', [...newItems, ...apart, ...oneOfEach]],
    ['new users alone with new items', bothNew],
    ['nothing new', known],
  ])('starts from the float64 solution: %s', async (_, rows) => {
    const base = await fit();
    const start = await base.update(dataset(rows), standing);
    expect(
      difference(
        factorsOf(start),
        referenceStart(factorsOf(base), rows, { biases, lambda: 0.07, prior: PRIOR_RATINGS }),
      ),
    ).toBeLessThan(2e-5);
  });

  it('solves with the offset and the damping that the model was trained with, and so does fold-in behind it', async () => {
    const binding = { regOffset: 2, ...(biases ? { biasDamping: [3, 5] as const } : {}) };
    const base = await new ALS({ biases, rank: 5, regParam: 0.07, seed: 2, ...binding }).fit(dataset(old));
    const mean = old.reduce((sum, { rating }) => sum + rating, 0) / old.length;
    const deviation = Math.hypot(...old.map(({ rating }) => rating - mean)) / Math.sqrt(old.length);
    const rows = [...newUsers, ...newItems, ...bothNew, ...oneOfEach];
    const start = await base.update(dataset(rows), standing);
    const rule = {
      biases,
      lambda: 0.07,
      prior: PRIOR_RATINGS,
      offset: 2 * deviation,
      damping: biases ? { users: 3, items: 5 } : undefined,
    };
    expect(difference(factorsOf(start), referenceStart(factorsOf(base), rows, rule))).toBeLessThan(2e-5);
    expect(start.metadata).toMatchObject({ params: binding, ratingDeviation: base.metadata.ratingDeviation });
    const folded = await Promise.all(
      [base, start].map(async (model) => factorsOf((await model.foldIn(dataset(newUsers))).model)),
    );
    for (const [id, row] of folded[0].users)
      folded[1].users.get(id)?.forEach((value, k) => expect(value).toBeCloseTo(row[k], 2));
  });

  it('solves with the λ that is asked for, and with a small one in place of 0', async () => {
    const base = await fit();
    for (const [regParam, lambda] of [
      [0.5, 0.5],
      [0, 0.01],
    ]) {
      const start = await base.update(dataset(newUsers), { ...standing, regParam });
      expect(
        difference(
          factorsOf(start),
          referenceStart(factorsOf(base), newUsers, { biases, lambda, prior: PRIOR_RATINGS }),
        ),
      ).toBeLessThan(2e-5);
    }
  });

  it.each([1000, 0.001])(
    'starts from the same solution and improves where ratings are %s times as large',
    async (scale) => {
      const scaled = (rows: readonly Triple[]) => rows.map((row) => ({ ...row, rating: scale * row.rating }));
      const base = await new SGD({ ...settings(biases), rank: 5, regParam: 0.02 * scale, seed: 2 }).fit(
        dataset(scaled(old)),
      );
      const rows = scaled(newUsers);
      const start = await base.update(dataset(rows), standing);
      const lambda = Math.max(0.01, 0.02 * scale);
      expect(
        difference(
          factorsOf(start),
          referenceStart(factorsOf(base), rows, { biases, lambda, prior: PRIOR_RATINGS }),
        ),
      ).toBeLessThan(1e-4);
      const rmse = async (model: Model) => (await model.evaluate(dataset(rows))).rmse;
      expect(await rmse(await base.update(dataset(rows)))).toBeLessThan(await rmse(start));
    },
  );

  it('takes new ratings that are all equal', async () => {
    const base = await fit();
    const rows = newUsers.map((row) => ({ ...row, rating: 4 }));
    const start = await base.update(dataset(rows), standing);
    expect(
      difference(
        factorsOf(start),
        referenceStart(factorsOf(base), rows, { biases, lambda: 0.07, prior: PRIOR_RATINGS }),
      ),
    ).toBeLessThan(2e-5);
  });

  it('is solved on the CPU beside another device', async () => {
    const device = secondDevice();
    await using both = await Session.create({ workers: 1, device: 'cpu' });
    (both.context().executor.devices as Device[]).push(device);
    const base = await fit(old, both);
    const before = device.ran.filter(({ kernel }) => kernel === 'update').length;
    const start = await base.update(dataset([...newUsers, ...bothNew], both), {
      ...standing,
      schedule: 'hogwild',
    });
    expect(device.ran.filter(({ kernel }) => kernel === 'update')).toHaveLength(before);
    expect(
      difference(
        factorsOf(start),
        referenceStart(factorsOf(base), [...newUsers, ...bothNew], {
          biases,
          lambda: 0.07,
          prior: PRIOR_RATINGS,
        }),
      ),
    ).toBeLessThan(2e-5);
  });

  it('predicts for new users and items nearly as well as a model trained anew', async () => {
    const [held, fresh] = [(_: Triple, i: number) => i % 4 === 0, (_: Triple, i: number) => i % 4 !== 0];
    const rows = [...newUsers, ...newItems, ...bothNew];
    const updated = await (await fit()).update(dataset(rows.filter(fresh)));
    const anew = await fit([...old, ...rows.filter(fresh)]);
    const rmse = async (model: Model) => (await model.evaluate(dataset(rows.filter(held)))).rmse;
    expect(await rmse(updated)).toBeLessThan((await rmse(anew)) + 0.04);
  });
});

describe('on real ratings', () => {
  const folders = (isDeep ? ['ml-latest-small', 'douban-monti'] : ['ml-latest-small']).map((set) => ({
    set,
    folder: dataFolder(set),
  }));

  it.skipIf(folders.some(({ folder }) => folder === undefined)).each(folders)(
    'a model updated with a tenth of $set is better than it was, by ALS and SGD',
    async ({ set, folder = '' }) => {
      const file = session.read.parquet(
        join(folder, set === 'douban-monti' ? 'train.parquet' : 'ratings.parquet'),
      );
      const [first, later, held] = await file.randomSplit([0.8, 0.1, 0.1], { seed: 7 });
      // Each has biases on one of the two sets.
      const biases = set === 'douban-monti';
      for (const trainer of [
        new ALS({ ...settings(biases), rank: 16, seed: 1 }),
        new SGD({ ...settings(!biases), rank: 16, seed: 1 }),
      ]) {
        const base = await trainer.fit(first);
        const updated = await base.update(later);
        // Over the pairs that the old model knows.
        const pairs = await knownPairs(base, held);
        expect((await updated.evaluate(pairs)).rmse).toBeLessThan((await base.evaluate(pairs)).rmse);
      }
    },
  );

  async function knownPairs(model: Model, ratings: Dataset): Promise<Dataset> {
    const batches = [];
    for await (const batch of model.predict(ratings, { coldStart: 'drop' })) batches.push(batch);
    return session.from(batches);
  }
});
