/** Updates of models of implicit data against float64, row by row. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Model } from '../../../index.ts';
import type { UpdateOptions } from '../../../api/training/update-options.ts';
import { distinctRatings, factorsById } from '../../support/implicit.ts';
import { eliminate } from '../../support/reference/als.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const session = await cpuSession();
const folder = temporaryFolder();

const form = { alpha: 3, regParam: 0.2, weight: 'spark' } as const;
const rank = 6;
const old = distinctRatings(5, 60, 40, 700);
// A rating of each kind: known user and item; new user, known item; new item, known users; and a dislike.
const fresh: readonly Triple[] = [
  { user: old[0].user, item: old[9].item, rating: 2 },
  { user: old[0].user, item: old[20].item, rating: -1 },
  { user: 900, item: old[3].item, rating: 1 },
  { user: 900, item: old[4].item, rating: 3 },
  { user: old[1].user, item: 901, rating: 1 },
  { user: old[2].user, item: 901, rating: 2 },
];

type Factors = Map<number, Float64Array>;
const dataset = (rows: readonly Triple[]) => session.from(ratingBatches(rows));
const fit = (more: AlsOptions = {}): Promise<Model> =>
  new ALS({ implicitPrefs: true, rank, maxIter: 4, ...form, ...more }).fit(dataset(old));

/** The rows of a side after its half of the round; rows without new ratings are unchanged. */
function updated(
  side: Factors,
  fixed: Factors,
  key: (row: Triple) => readonly [own: number, other: number],
  unobserved: number | undefined,
  { rows: fresh, cold = [] }: { readonly rows: readonly Triple[]; readonly cold?: readonly number[] },
): Factors {
  const result = new Map(side);
  for (const id of new Set(fresh.map((row) => key(row)[0]))) {
    const rows = fresh.filter((row) => key(row)[0] === id);
    const before = side.get(id) ?? new Float64Array(rank);
    const shift =
      form.regParam * (rows.filter(({ rating }) => rating > 0).length + (unobserved ?? 0) * fixed.size);
    const a = Array.from({ length: rank }, () => new Float64Array(rank + 1));
    for (const theta of fixed.values())
      for (let i = 0; i < rank; i++)
        for (let j = 0; j < rank; j++) a[i][j] += (unobserved ?? 1) * theta[i] * theta[j];
    for (let i = 0; i < rank; i++) {
      a[i][i] += shift;
      a[i][rank] = cold.includes(id)
        ? shift * before[i]
        : before.reduce((sum, value, j) => sum + a[i][j] * value, 0);
    }
    for (const row of rows) {
      const theta = fixed.get(key(row)[1]) ?? new Float64Array(rank);
      for (let i = 0; i < rank; i++) {
        for (let j = 0; j < rank; j++) a[i][j] += form.alpha * Math.abs(row.rating) * theta[i] * theta[j];
        if (row.rating > 0)
          a[i][rank] += ((unobserved === undefined ? 1 : 0) + form.alpha * row.rating) * theta[i];
      }
    }
    result.set(id, eliminate(a, rank));
  }
  return result;
}

/** Adds the ids that a side does not have, at 0. */
const widened = (side: Factors, ids: readonly number[]): Factors =>
  new Map([...side, ...ids.filter((id) => !side.has(id)).map((id) => [id, new Float64Array(rank)] as const)]);

describe('update of a model of implicit data', () => {
  it.each([undefined, 0.1])(
    'solves the rows with new ratings from where they are, and leaves the others, unobservedWeight %s',
    async (unobservedWeight) => {
      const model = await fit(unobservedWeight === undefined ? {} : { unobservedWeight });
      const after = await model.update(dataset(fresh));
      const [users, items] = [
        widened(
          factorsById(model.userFactors),
          fresh.map(({ user }) => user),
        ),
        widened(
          factorsById(model.itemFactors),
          fresh.map(({ item }) => item),
        ),
      ];
      const given = { rows: fresh };
      const expectedItems = updated(items, users, ({ user, item }) => [item, user], unobservedWeight, given);
      const expectedUsers = updated(
        users,
        expectedItems,
        ({ user, item }) => [user, item],
        unobservedWeight,
        given,
      );
      for (const [expected, got, before] of [
        [expectedItems, factorsById(after.itemFactors), items],
        [expectedUsers, factorsById(after.userFactors), users],
      ] as const) {
        expect([...got.keys()].sort((a, b) => a - b)).toEqual([...expected.keys()].sort((a, b) => a - b));
        for (const [id, row] of expected) {
          if (row === before.get(id)) expect(got.get(id)).toEqual(row);
          else row.forEach((value, k) => expect(Math.abs(got.get(id)![k] - value)).toBeLessThan(2e-4));
        }
      }
      expect(after.metadata.params).toMatchObject({ implicitPrefs: true, ...form });
    },
  );

  it.each([undefined, 0.1])(
    'draws rows without earlier ratings to what their attributes predict, unobservedWeight %s',
    async (unobservedWeight) => {
      // Users 960 and 961 and items 950 and 951 have no ratings, and 961 and 951 get none.
      const rows = [
        ...fresh,
        { user: old[1].user, item: 950, rating: 2 },
        { user: 960, item: old[7].item, rating: 1 },
        { user: 960, item: 950, rating: 3 },
      ];
      const attributes = (ids: readonly number[]) => ({
        data: session.fromRows(ids.map((id) => ({ id, kind: `kind ${id % 3}`, size: ((7 * id) % 11) / 2 }))),
      });
      const idsWith = (side: 'user' | 'item', more: readonly number[]) => [
        ...new Set([...old.map((row) => row[side]), ...more]),
      ];
      const model = await fit({
        ...(unobservedWeight === undefined ? {} : { unobservedWeight }),
        userAttributes: attributes(idsWith('user', [960, 961])),
        itemAttributes: attributes(idsWith('item', [950, 951])),
      });
      const one = await model.update(dataset(rows));
      const constants = (coefficients: Model['userCoefficients']) =>
        Float64Array.from(coefficients?.get(0)?.coefficients as Iterable<number>);
      const before = {
        users: factorsById(model.userFactors).set(900, constants(model.userCoefficients)),
        items: factorsById(model.itemFactors).set(901, constants(model.itemCoefficients)),
      };
      const without = (side: Factors, id: number): Factors =>
        new Map([...side].filter(([own]) => own !== id));
      const items = updated(
        before.items,
        without(before.users, 961),
        ({ user, item }) => [item, user],
        unobservedWeight,
        { rows, cold: [950, 901] },
      );
      const users = updated(
        before.users,
        without(items, 951),
        ({ user, item }) => [user, item],
        unobservedWeight,
        { rows, cold: [960, 900] },
      );
      for (const [expected, found, start] of [
        [items, factorsById(one.itemFactors), before.items],
        [users, factorsById(one.userFactors), before.users],
      ] as const) {
        expect([...found.keys()].sort()).toEqual([...expected.keys()].sort());
        for (const [id, row] of expected) {
          if (row === start.get(id)) expect(found.get(id)).toEqual(row);
          else row.forEach((value, k) => expect(Math.abs(found.get(id)![k] - value)).toBeLessThan(2e-4));
        }
      }
      const countOf = (made: Model, side: 'user' | 'item', id: number) =>
        made[`${side}Counts`]?.[(made[`${side}Arrays`].ids as number[]).indexOf(id)];
      expect([countOf(one, 'item', 950), countOf(one, 'item', 951)]).toEqual([2, 0]);
      expect([countOf(one, 'user', 960), countOf(one, 'user', 961)]).toEqual([2, 0]);
      expect(one.attributes).toBe(model.attributes);
      const three = await cpuSession({ workers: 3 });
      const path = join(folder, `model-${unobservedWeight}`);
      await model.save(path);
      const other = await (await three.loadModel(path)).update(three.from(ratingBatches(rows)));
      expect(other.userArrays).toEqual(one.userArrays);
      expect(other.itemArrays).toEqual(one.itemArrays);
    },
  );

  it('keeps factors of a non-negative model at 0 or above', async () => {
    const after = await (await fit({ nonnegative: true })).update(dataset(fresh));
    for (const row of factorsById(after.userFactors).values())
      for (const value of row) expect(value).toBeGreaterThanOrEqual(0);
  });

  it('has a plan, and refuses options that cannot be used', async () => {
    const model = await fit();
    expect(String(await model.planUpdate(dataset(fresh)))).toContain('update-implicit');
    await expect(model.update(dataset(fresh), { learningRate: 0.1 })).rejects.toThrow(
      'learningRate cannot be used on a model of implicit data, which is updated by one round of ALS ' +
        'with its own parameters',
    );
    await expect(model.update(dataset(fresh), { validation: dataset(fresh) })).rejects.toThrow(
      'validation cannot be used on a model of implicit data',
    );
    await expect(model.update(dataset(fresh), { nonsense: 1 } as UpdateOptions)).rejects.toThrow(
      'update has no option nonsense',
    );
  });
});
