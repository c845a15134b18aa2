/** ALS with factors that stay at 0 or above. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model } from '../../../index.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { chooseSolver } from '../../../operators/als/solver-choice.ts';
import { isDeep, sampleSize } from '../../support/deep.ts';
import { randomRatings, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { plain, undamped } from '../../support/settings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { valuesOf as factors } from '../../support/model-values.ts';

const session = await cpuSession();

const dataset = (rows: readonly Triple[], of = session): Dataset => of.from(ratingBatches(rows, 611));
const fit = (rows: readonly Triple[], options: AlsOptions, of = session): Promise<Model> =>
  new ALS({ ...plain, nonnegative: true, ...options }).fit(dataset(rows, of));
const least = (model: Model) =>
  [factors(model.userFactors), factors(model.itemFactors)].map((values) =>
    values.reduce((a, b) => Math.min(a, b), Infinity),
  );

function expectToFall(model: Model): void {
  const losses = model.training?.iterations.map((iteration) => iteration.loss) ?? [];
  losses.slice(1).forEach((loss, i) => expect(loss).toBeLessThanOrEqual(losses[i] * (1 + 1e-5)));
}

describe('non-negative als', () => {
  it('keeps all factors >= 0 and never lets the loss rise', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1e6 }),
          users: fc.integer({ min: 1, max: 40 }),
          items: fc.integer({ min: 1, max: 40 }),
          count: fc.integer({ min: 1, max: 700 }),
          rank: fc.constantFrom(1, 2, 5, 8, 17, 32),
          regParam: fc.constantFrom(0.001, 0.1, 1),
          shift: fc.constantFrom(0, 2),
        }),
        async ({ users, items, count, shift, seed, ...options }) => {
          // Shifted down by 2, some ratings are negative: no product of such factors reaches those.
          const rows = randomRatings(seed, users, items, count).map((row) => ({
            ...row,
            rating: row.rating - shift,
          }));
          const model = await fit(rows, { ...options, seed, maxIter: 5 });
          for (const value of least(model)) expect(value).toBeGreaterThanOrEqual(0);
          expectToFall(model);
        },
      ),
      { numRuns: sampleSize(12), seed: 3 },
    );
  });

  it.runIf(isDeep)(
    'recovers a planted non-negative matrix, which plain ALS recovers with negative factors',
    async () => {
      const random = testRandom(7);
      const [m, n, f] = [80, 60, 4];
      const factor = () => Array.from({ length: f }, () => Math.max(0, 1.5 * random() - 0.5));
      const [x, theta] = [Array.from({ length: m }, factor), Array.from({ length: n }, factor)];
      const rows: Triple[] = [];
      for (let user = 0; user < m; user++) {
        for (let item = 0; item < n; item++) {
          if (random() < 0.7)
            rows.push({
              user,
              item,
              rating: x[user].reduce((dot, value, i) => dot + value * theta[item][i], 0),
            });
        }
      }
      const held = rows.splice(0, 200);
      const options = { rank: f, regParam: 1e-6, maxIter: 150, seed: 1 };
      const model = await fit(rows, options);
      expect((await model.evaluate(dataset(held))).rmse).toBeLessThan(5e-3);
      for (const value of least(model)) expect(value).toBeGreaterThanOrEqual(0);
      expect(Math.min(...least(await fit(rows, { ...options, nonnegative: false })))).toBeLessThan(0);
    },
  );

  it('leaves biases free: they may be negative, the factors beside them not', async () => {
    const model = await fit(randomRatings(17, 90, 70, 2500), {
      ...undamped,
      rank: 6,
      regParam: 0.05,
      maxIter: 8,
    });
    expectToFall(model);
    const [users, items] = [factors(model.userFactors), factors(model.itemFactors)];
    const column = (values: Float32Array, at: number) => values.filter((_, k) => k % 8 === at);
    for (let at = 0; at < 6; at++)
      for (const side of [users, items]) expect(Math.min(...column(side, at))).toBeGreaterThanOrEqual(0);
    expect(Math.min(...column(items, 7))).toBeLessThan(0);
  });

  it('takes solver auto and cholesky alike, and refuses cg', async () => {
    const rows = randomRatings(6, 50, 40, 600);
    const [auto, cholesky] = await Promise.all(
      (['auto', 'cholesky'] as const).map((solver) => fit(rows, { rank: 4, maxIter: 2, solver })),
    );
    expect(factors(cholesky.userFactors)).toEqual(factors(auto.userFactors));
    expect(() => new ALS({ nonnegative: true, solver: 'cg' })).toThrow(
      'solver cg cannot be used with nonnegative',
    );
    expect(() => new ALS({ nonnegative: 1 as unknown as boolean })).toThrow(
      'nonnegative must be true or false, got 1',
    );
    expect(chooseSolver(checkAlsParams({ rank: 64, nonnegative: true })).kernel).toBe('nnls');
  });
});
