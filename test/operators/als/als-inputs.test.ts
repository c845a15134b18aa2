import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model } from '../../../index.ts';
import { randomRatings, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { plain, undamped } from '../../support/settings.ts';
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

describe('ratings of any size and kind', () => {
  it.each(['cholesky', 'cg'] as const)('recovers a noiseless low-rank matrix with %s', async (solver) => {
    const random = testRandom(7);
    const [m, n, f] = [80, 60, 4];
    const factor = () => Array.from({ length: f }, () => random() * 2 - 1);
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
    const model = await fit(rows, { rank: f, regParam: 1e-7, maxIter: 60, solver });
    expect(model.training?.iterations.at(-1)?.trainRmse).toBeLessThan(1e-3);
    expect((await model.evaluate(dataset(held))).rmse).toBeLessThan(1e-3);
  });

  it('trains without λ where rows have fewer ratings than factors, as CG does', async () => {
    const rows = [
      { user: 11, item: 1, rating: 0 },
      { user: 11, item: 2, rating: 0 },
      { user: 12, item: 2, rating: 0 },
    ];
    for (const rating of [0, 3, 1e6]) {
      for (const biases of [false, true]) {
        const model = await fit(
          rows.map((row, at) => ({ ...row, rating: rating * (1 + at) })),
          { rank: 8, regParam: 0, solver: 'cholesky', biases },
        );
        expect(model.training?.iterations.at(-1)?.trainRmse).toBeLessThanOrEqual(0.01 * rating);
      }
    }
  });

  it.each(['cholesky', 'cg'] as const)(
    'trains ratings of any size to the same relative error with solver %s',
    async (solver) => {
      for (const biases of [false, true]) {
        const errors: number[] = [];
        for (const scale of [1, 1e-30, 1e37]) {
          const rows = randomRatings(3, 30, 30, 300).map((row) => ({ ...row, rating: row.rating * scale }));
          const model = await fit(rows, { rank: 4, biases, solver, regParam: 0.1 * scale, regOffset: 1 });
          errors.push((model.training?.iterations.at(-1)?.trainRmse as number) / scale);
          expect((await model.evaluate(dataset(rows))).rmse / scale).toBeCloseTo(errors.at(-1) as number, 4);
        }
        // λ of biases has no unit, so that the solutions differ a little.
        for (const error of errors) expect(error / errors[0]).toBeCloseTo(1, biases ? 0 : 1);
      }
    },
  );

  it('trains play counts, equal ratings, negative ratings, and one user, item or rating', async () => {
    const random = testRandom(8);
    const counts = randomRatings(6, 40, 30, 500).map((row) => ({
      ...row,
      rating: Math.ceil(Math.exp(12.7 * random() ** 3)),
    }));
    const sets: readonly (readonly Triple[])[] = [
      counts,
      counts.map((row) => ({ ...row, rating: 4 })),
      counts.map((row) => ({ ...row, rating: -row.rating })),
      counts.filter(({ user }) => user === counts[0].user),
      counts.filter(({ item }) => item === counts[0].item),
      counts.slice(0, 1),
    ];
    for (const rows of sets) {
      const squares = rows.reduce((sum, { rating }) => sum + rating ** 2, 0) / rows.length;
      for (const [at, more] of (
        [{}, { biases: true }, { start: 'level' }] satisfies AlsOptions[]
      ).entries()) {
        const solver = (at + sets.indexOf(rows)) % 2 === 0 ? 'cholesky' : 'cg';
        const model = await fit(rows, { rank: 20, solver, maxIter: 5, ...more });
        expect(model.training?.iterations.at(-1)?.trainRmse).toBeLessThan(0.9 * Math.sqrt(squares));
      }
    }
  });
});
