/** Updates of models of implicit data against float64, row by row. */
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Model } from '../../../index.ts';
import type { UpdateOptions } from '../../../api/training/update-options.ts';
import { distinctRatings, factorsById } from '../../support/implicit.ts';
import { eliminate } from '../../support/reference/als.ts';
import { ratingBatches, type Triple } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

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
      a[i][rank] = before.reduce((sum, value, j) => sum + a[i][j] * value, 0);
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
      const expectedItems = updated(items, users, ({ user, item }) => [item, user], unobservedWeight);
      const expectedUsers = updated(users, expectedItems, ({ user, item }) => [user, item], unobservedWeight);
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
