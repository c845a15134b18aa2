import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model } from '../../../index.ts';
import { randomRatings, ratingBatches, shuffled, testRandom, type Triple } from '../../support/ratings.ts';
import { plain, undamped } from '../../support/settings.ts';
import { sampleSize } from '../../support/deep.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const session = await cpuSession();

function dataset(rows: readonly Triple[], of = session): Dataset {
  return of.from(ratingBatches(rows, 997));
}

async function fit(
  rows: readonly Triple[],
  options: AlsOptions,
  validation?: readonly Triple[],
): Promise<Model> {
  return new ALS({ ...(options.biases ? undamped : plain), ...options }).fit(
    dataset(rows),
    validation && { validation: dataset(validation) },
  );
}

/** Factor rows by external id. */
function factorsById(batch: Model['userFactors']): Map<number, Float64Array> {
  const ids = batch.getChildAt(0)?.toArray() as Int32Array;
  const values = batch.data.children[1].children[0].values as Float32Array;
  const rank = values.length / ids.length;
  return new Map([...ids].map((id, i) => [id, Float64Array.from(values.subarray(i * rank, (i + 1) * rank))]));
}

/** ‖A x - b‖ / (‖A‖ ‖x‖ + ‖b‖) of one row's normal equations, in float64. */
function residual(
  x: Float64Array,
  rated: readonly { theta: Float64Array; rating: number }[],
  lambda: number,
): number {
  const f = x.length;
  const a = Array.from({ length: f }, () => new Float64Array(f));
  const b = new Float64Array(f);
  for (const { theta, rating } of rated) {
    for (let i = 0; i < f; i++) {
      b[i] += rating * theta[i];
      for (let j = 0; j < f; j++) a[i][j] += theta[i] * theta[j];
    }
  }
  for (let i = 0; i < f; i++) a[i][i] += lambda * rated.length;
  const norm = (values: Iterable<number>) => Math.hypot(...values);
  const error = b.map((value, i) => a[i].reduce((sum, entry, j) => sum + entry * x[j], 0) - value);
  return norm(error) / (norm(a.flatMap((row) => [...row])) * norm(x) + norm(b));
}

/** J of the explicit problem, in float64. */
function loss(
  rows: readonly Triple[],
  users: Map<number, Float64Array>,
  items: Map<number, Float64Array>,
  lambda: number,
): number {
  let sum = 0;
  for (const { user, item, rating } of rows) {
    const [x, theta] = [users.get(user) as Float64Array, items.get(item) as Float64Array];
    const error = rating - x.reduce((dot, value, i) => dot + value * theta[i], 0);
    const squares = (values: Float64Array) => values.reduce((total, value) => total + value * value, 0);
    sum += error * error + lambda * (squares(x) + squares(theta));
  }
  return sum;
}

describe('als', () => {
  it('solves every user exactly: residual of the normal equations <= 1e-5 in float64', async () => {
    for (const rank of [1, 7, 32, 63, 100]) {
      const rows = randomRatings(rank, 120, 90, 3000);
      const model = await fit(rows, { rank, regParam: 0.05, maxIter: 3, solver: 'cholesky' });
      const [users, items] = [factorsById(model.userFactors), factorsById(model.itemFactors)];
      for (const user of [...users.keys()].filter((_, i) => i % 11 === 0)) {
        const rated = rows
          .filter((row) => row.user === user)
          .map(({ item, rating }) => ({ theta: items.get(item) as Float64Array, rating }));
        expect(residual(users.get(user) as Float64Array, rated, 0.05)).toBeLessThanOrEqual(1e-5);
      }
    }
  });

  it('reports the loss that its factors have', async () => {
    const rows = randomRatings(2, 60, 50, 900);
    const model = await fit(rows, { rank: 9, regParam: 0.07, maxIter: 4 });
    const expected = loss(rows, factorsById(model.userFactors), factorsById(model.itemFactors), 0.07);
    expect(model.training?.iterations.at(-1)?.loss).toBeCloseTo(expected, 3);
  });

  it('never lets the loss rise between half-iterations of the exact solver', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.integer({ min: 1, max: 1e6 }),
          users: fc.integer({ min: 1, max: 40 }),
          items: fc.integer({ min: 1, max: 40 }),
          count: fc.integer({ min: 1, max: 700 }),
          rank: fc.constantFrom(1, 2, 5, 8, 17, 32),
          lambda: fc.constantFrom(0.01, 0.1, 1),
        }),
        async ({ seed, users, items, count, rank, lambda }) => {
          const rows = randomRatings(seed, users, items, count);
          const options: AlsOptions = { rank, regParam: lambda, solver: 'cholesky', seed };
          // The loss after items alone is not reported: it is between the losses of whole iterations, checked
          // from the factors.
          const steps =
            (await fit(rows, { ...options, maxIter: 5 })).training?.iterations.map(
              (iteration) => iteration.loss,
            ) ?? [];
          const before = await fit(rows, { ...options, maxIter: 2 });
          const after = await fit(rows, { ...options, maxIter: 3 });
          const half = loss(rows, factorsById(before.userFactors), factorsById(after.itemFactors), lambda);
          const path = [steps[1], half, steps[2]];
          const rounding = 1 + 1e-5;
          for (const [i, value] of steps.slice(1).entries())
            expect(value).toBeLessThanOrEqual(steps[i] * rounding);
          for (const [i, value] of path.slice(1).entries())
            expect(value).toBeLessThanOrEqual(path[i] * rounding);
        },
      ),
      { numRuns: sampleSize(12) },
    );
  });

  it('gives the same bits for permuted rows and for 1, 2 or 5 workers', async () => {
    const rows = randomRatings(4, 500, 300, 30_000);
    // Its long rows are solved by Cholesky, short ones by conjugate gradients.
    const solver = 'auto';
    const options: AlsOptions = { rank: 20, regParam: 0.05, maxIter: 3, solver, seed: 5 };
    const first = await fit(rows, options);
    const permuted = await fit(shuffled(rows, 3), options);
    expect(permuted.userFactors.data.children[1].children[0].values).toEqual(
      first.userFactors.data.children[1].children[0].values,
    );
    for (const workers of [1, 5]) {
      const other = await cpuSession({ workers });
      const model = await new ALS({ ...(options.biases ? undamped : plain), ...options }).fit(
        dataset(rows, other),
      );
      expect(model.userFactors.data.children[1].children[0].values).toEqual(
        first.userFactors.data.children[1].children[0].values,
      );
      expect(model.itemFactors.data.children[1].children[0].values).toEqual(
        first.itemFactors.data.children[1].children[0].values,
      );
      expect(model.training?.iterations.map((iteration) => iteration.loss)).toEqual(
        first.training?.iterations.map((iteration) => iteration.loss),
      );
    }
  });

  it('finds the level of positive ratings at once from absolute rows, as every start does in the end', async () => {
    const rows = randomRatings(5, 60, 50, 1200);
    const first = async (start: 'spark' | 'level', maxIter: number) =>
      (await fit(rows, { rank: 6, maxIter, start })).training?.iterations.at(-1)?.trainRmse ?? NaN;
    expect(await first('level', 1)).toBeLessThan(0.65 * (await first('spark', 1)));
    expect(await first('level', 60)).toBeCloseTo(await first('spark', 60), 1);
    // Biases have the level with either start.
    const [spark, level] = await Promise.all(
      (['spark', 'level'] as const).map(
        async (start) =>
          (await fit(rows, { rank: 6, maxIter: 1, biases: true, start })).training?.iterations[0]
            .trainRmse as number,
      ),
    );
    expect(level / spark).toBeGreaterThan(0.8);
    expect(level / spark).toBeLessThan(1.25);
  });

  it('solves rows of one rating, and ranks above every row length', async () => {
    const rows = [
      { user: 1, item: 1, rating: 4 },
      { user: 2, item: 1, rating: 2 },
      { user: 2, item: 2, rating: 5 },
    ];
    for (const solver of ['cholesky', 'cg'] as const) {
      const model = await fit(rows, { rank: 40, regParam: 0.01, maxIter: 15, solver });
      expect(model.training?.iterations.at(-1)?.trainRmse).toBeLessThan(0.1);
    }
  });

  describe('stopping', () => {
    // A product structure that is soon learnt, and noise that a high rank then learns too.
    const random = testRandom(8);
    const all = shuffled(randomRatings(8, 150, 80, 6000), 1).map((row) => ({
      ...row,
      rating:
        3 +
        Math.sin(row.user) * Math.cos(row.item) +
        2 * Math.sin(row.user * 5) * Math.sin(row.item * 3) +
        random(),
    }));
    const [train, test] = [all.slice(400), all.slice(0, 400)];

    it('ends early without a better validation RMSE, and keeps the best factors', async () => {
      const model = await fit(
        train,
        { rank: 8, regParam: 0.002, maxIter: 100, earlyStop: 3, solver: 'cholesky' },
        test,
      );
      const report = model.training;
      const errors = report?.iterations.map((iteration) => iteration.testRmse as number) ?? [];
      const best = errors.indexOf(Math.min(...errors)) + 1;
      expect(report?.bestIteration).toBe(best);
      expect(errors.length).toBe(best + 3);
      expect((await model.evaluate(dataset(test))).rmse).toBeCloseTo(errors[best - 1], 5);
    });

    it('ends at the target', async () => {
      const free = await fit(train, { rank: 5, maxIter: 8 }, test);
      const errors = free.training?.iterations.map((iteration) => iteration.testRmse as number) ?? [];
      const model = await fit(train, { rank: 5, maxIter: 8, targetRmse: errors[2] }, test);
      expect(model.training?.iterations.length).toBe(errors.findIndex((error) => error <= errors[2]) + 1);
      expect(model.training?.iterations.length).toBeLessThan(8);
    });

    it('refuses both without a validation set', async () => {
      await expect(fit(train, { earlyStop: 2 })).rejects.toThrow('earlyStop needs a validation set');
      await expect(fit(train, { targetRmse: 1 }, [{ user: -999, item: 5, rating: 1 }])).rejects.toThrow(
        'this one has no such ratings',
      );
    });
  });
});
