/**
 * The start of an update: new users and items start at their least-squares rows, the model's own rows are
 * unchanged.
 */
import { describe, expect, it } from 'vitest';
import type { Device } from '../../../engine/run/device.ts';
import { ALS, type Dataset, type Model, Session, SGD } from '../../../index.ts';
import { PRIOR_RATINGS } from '../../../operators/sgd/data/continue.ts';
import { isDeep } from '../../support/deep.ts';
import { secondDevice } from '../../support/devices/second-device.ts';
import { plantedRatings } from '../../support/planted.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { type FactorsById, referenceStart } from '../../support/reference/update.ts';
import { undamped } from '../../support/settings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const settings = (biases: boolean) => (biases ? undamped : { biases });

const session = await cpuSession();

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

const models = new Map<boolean, Model>();

/** Expects the start of an update to be the float64 solution. */
function expectStart(
  base: Model,
  start: Model,
  rows: readonly Triple[],
  rule: Omit<Parameters<typeof referenceStart>[2], 'prior'>,
  within = 2e-5,
): void {
  const expected = referenceStart(factorsOf(base), rows, { prior: PRIOR_RATINGS, ...rule });
  expect(difference(factorsOf(start), expected)).toBeLessThan(within);
}

describe.each([true, false])('an update, biases %s', (biases) => {
  const fit = (rows: readonly Triple[] = old, on = session) =>
    new ALS({ ...settings(biases), rank: 5, regParam: 0.07, seed: 2 }).fit(dataset(rows, on));

  const fitted = async () => {
    const model = models.get(biases) ?? (await fit());
    models.set(biases, model);
    return model;
  };

  it.each<[string, readonly Triple[]]>([
    ['new users who rated new items', [...newUsers, ...newItems, ...bothNew, ...known]],
    ['new users and items that nothing known leads to', [...newItems, ...apart, ...oneOfEach]],
    ['new users alone with new items', bothNew],
    ['nothing new', known],
  ])('starts from the float64 solution: %s', async (_, rows) => {
    const base = await fitted();
    const start = await base.update(dataset(rows), standing);
    expectStart(base, start, rows, { biases, lambda: 0.07 });
  });

  it('draws rows without earlier ratings to what their attributes predict', async () => {
    // Users 950 and 951 and items 850 and 851 have no ratings, and 951 and 851 get none.
    const cold = { users: [950, 951], items: [850, 851] };
    const attributes = (ids: readonly number[]) => ({
      data: session.fromRows(ids.map((id) => ({ id, kind: `kind ${id % 3}`, size: ((7 * id) % 11) / 2 }))),
    });
    const count = (n: number) => Array.from({ length: n }, (_, id) => id);
    const base = await new ALS({
      ...settings(biases),
      rank: 5,
      regParam: 0.07,
      userAttributes: attributes([...count(100), ...cold.users]),
      itemAttributes: attributes([...count(60), ...cold.items]),
    }).fit(dataset(old));
    const rows: readonly Triple[] = [
      ...known,
      ...newUsers,
      ...newItems,
      { user: 950, item: 3, rating: 5 },
      { user: 950, item: 850, rating: 2 },
      { user: 4, item: 850, rating: 1 },
      { user: 110, item: 850, rating: 4 },
    ];
    const before = factorsOf(base);
    const priorOf = (coefficients: Model['userCoefficients']) =>
      Array.from(coefficients?.get(0)?.coefficients as Iterable<number>);
    const priors = { users: priorOf(base.userCoefficients), items: priorOf(base.itemCoefficients) };
    const start = await base.update(dataset(rows), standing);
    expectStart(base, start, rows, { biases, lambda: 0.07, cold, priors });
    expect(factorsOf(base)).toEqual(before);
    const counts = (made: Model) => [
      made.userCounts?.[(made.userArrays.ids as number[]).indexOf(950)],
      made.itemCounts?.[(made.itemArrays.ids as number[]).indexOf(850)],
      made.itemCounts?.[(made.itemArrays.ids as number[]).indexOf(851)],
    ];
    expect([counts(base), counts(start)]).toEqual([
      [0, 0, 0],
      [2, 3, 0],
    ]);
    // Three later ratings of the item move it by small steps, since it has earlier ratings now.
    const later = await start.update(dataset([{ user: 5, item: 850, rating: 1 }]), standing);
    expectStart(start, later, [], { biases, lambda: 0.07 });
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

  it.runIf(biases || isDeep).each([1000, 0.001])(
    'starts from the same solution and improves where ratings are %s times as large',
    async (scale) => {
      const scaled = (rows: readonly Triple[]) => rows.map((row) => ({ ...row, rating: scale * row.rating }));
      const base = await new SGD({ ...settings(biases), rank: 5, regParam: 0.02 * scale, seed: 2 }).fit(
        dataset(scaled(old)),
      );
      const rows = scaled(newUsers);
      const start = await base.update(dataset(rows), standing);
      const lambda = Math.max(0.01, 0.02 * scale);
      expectStart(base, start, rows, { biases, lambda }, 1e-4);
      const rmse = async (model: Model) => (await model.evaluate(dataset(rows))).rmse;
      expect(await rmse(await base.update(dataset(rows)))).toBeLessThan(await rmse(start));
    },
  );

  it.runIf(biases || isDeep)('is solved on the CPU beside another device', async () => {
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
    expectStart(base, start, [...newUsers, ...bothNew], {
      biases,
      lambda: 0.07,
    });
  });

  it('predicts for new users and items nearly as well as a model trained anew', async () => {
    const [held, fresh] = [(_: Triple, i: number) => i % 4 === 0, (_: Triple, i: number) => i % 4 !== 0];
    const rows = [...newUsers, ...newItems, ...bothNew];
    const updated = await (await fitted()).update(dataset(rows.filter(fresh)));
    const anew = await fit([...old, ...rows.filter(fresh)]);
    const rmse = async (model: Model) => (await model.evaluate(dataset(rows.filter(held)))).rmse;
    expect(await rmse(updated)).toBeLessThan((await rmse(anew)) + 0.04);
  });
});
