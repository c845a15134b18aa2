/** ALS with biases: the same mathematics with one more feature, folded into two on the model. */
import { describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model } from '../../../index.ts';
import { randomRatings, ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { undamped } from '../../support/settings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { valuesOf as factors } from '../../support/model-values.ts';

const session = await cpuSession();

const dataset = (rows: readonly Triple[]): Dataset => session.from(ratingBatches(rows, 611));
const fit = (rows: readonly Triple[], options: AlsOptions): Promise<Model> =>
  new ALS({ ...undamped, ...options }).fit(dataset(rows));

describe.each(['cholesky', 'cg'] as const)('als with biases and solver %s', (solver) => {
  it('learns ratings that are sums of biases: r = μ + β_u + γ_v', async () => {
    const random = testRandom(5);
    const [beta, gamma] = [
      Array.from({ length: 60 }, () => random() - 0.5),
      Array.from({ length: 40 }, () => 2 * random() - 1),
    ];
    const rows = beta
      .flatMap((b, user) => gamma.map((g, item) => ({ user, item, rating: 3 + b + g })))
      .filter(() => random() < 0.6);
    const model = await fit(rows.slice(100), { rank: 1, regParam: 1e-5, maxIter: 30, solver });
    expect((await model.evaluate(dataset(rows.slice(0, 100)))).rmse).toBeLessThan(2e-3);
  });

  it('shrinks the factors of a separate pair with a mean rating to 0', async () => {
    const rows = Array.from({ length: 200 }, (_, at) => ({
      user: 1 + (at % 20),
      item: 1 + Math.floor(at / 20),
      rating: 1 + ((7 * (at % 20) + 3 * Math.floor(at / 20)) % 5),
    }));
    const model = await fit([{ user: 0, item: 0, rating: 3 }, ...rows], {
      rank: 16,
      regParam: 0.1,
      maxIter: 30,
      solver,
    });
    expect(model.training?.iterations.at(-1)?.trainRmse).toBeLessThan(0.3);
  });

  it('lets the loss fall, and reports the errors that its model has', async () => {
    const rows = randomRatings(17, 90, 70, 2500);
    const model = await fit(rows, { rank: 6, regParam: 0.05, maxIter: 8, solver });
    const losses = model.training?.iterations.map((iteration) => iteration.loss) ?? [];
    losses.slice(1).forEach((loss, i) => expect(loss).toBeLessThanOrEqual(losses[i] * (1 + 1e-5)));
    expect((await model.evaluate(dataset(rows))).rmse).toBeCloseTo(
      model.training?.iterations.at(-1)?.trainRmse as number,
      4,
    );
  });
});

describe('a model with biases', () => {
  it('has two more features, 1 beside the bias on each side', async () => {
    const model = await fit(randomRatings(3, 20, 20, 200), { rank: 3, maxIter: 2 });
    expect([model.rank, model.features]).toEqual([3, 5]);
    const [users, items] = [factors(model.userFactors), factors(model.itemFactors)];
    for (let u = 0; u < model.userCount; u++) expect(users[5 * u + 4]).toBe(1);
    for (let v = 0; v < model.itemCount; v++) expect(items[5 * v + 3]).toBe(1);
  });
});
