import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model } from '../../../index.ts';
import { ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
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
});
