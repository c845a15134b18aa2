/** ALS with biases: the same mathematics with one more feature, folded into two on the model. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model, Session } from '../../../index.ts';
import { dataFolder } from '../../support/data-folder.ts';
import { randomRatings, ratingBatches, shuffled, testRandom, type Triple } from '../../support/ratings.ts';
import { plain, undamped } from '../../support/settings.ts';

let session: Session;
beforeAll(async () => {
  session = await Session.create({ workers: 2 });
});
afterAll(() => session.close());

const dataset = (rows: readonly Triple[]): Dataset => session.from(ratingBatches(rows, 611));
const fit = (rows: readonly Triple[], options: AlsOptions): Promise<Model> =>
  new ALS({ ...undamped, ...options }).fit(dataset(rows));
const factors = (batch: Model['userFactors']) => batch.data.children[1].children[0].values as Float32Array;

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

  it('gives the same bits for permuted rows and any number of workers', async () => {
    const rows = randomRatings(19, 200, 150, 9000);
    const first = await fit(rows, { rank: 7, maxIter: 3, solver });
    const permuted = await fit(shuffled(rows, 2), { rank: 7, maxIter: 3, solver });
    expect(factors(permuted.userFactors)).toEqual(factors(first.userFactors));
    await using other = await Session.create({ workers: 5 });
    const model = await new ALS({ rank: 7, maxIter: 3, solver, ...undamped }).fit(
      other.from(ratingBatches(rows, 100)),
    );
    expect(factors(model.itemFactors)).toEqual(factors(first.itemFactors));
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

  it('keeps the best factors and biases of an early stop', async () => {
    const random = testRandom(9);
    const rows = shuffled(randomRatings(9, 100, 80, 4000), 4).map((row) => ({
      ...row,
      rating: row.rating + random(),
    }));
    const [train, test] = [rows.slice(400), rows.slice(0, 400)];
    const model = await new ALS({ ...undamped, rank: 12, regParam: 0.01, maxIter: 30, earlyStop: 2 }).fit(
      dataset(train),
      { validation: dataset(test) },
    );
    const best = Math.min(
      ...(model.training?.iterations.map((iteration) => iteration.testRmse as number) ?? []),
    );
    expect((await model.evaluate(dataset(test))).rmse).toBeCloseTo(best, 4);
  });
});

describe('on real ratings at λ = 0.1', () => {
  const sets = [
    ['ml-latest-small', 32, 0.02],
    ['filmtrust', 16, 0.04],
  ] as const;
  const douban = dataFolder('douban-monti');

  it.skipIf(!douban)('biases lower the test RMSE of douban-monti by more than 0.01', async () => {
    const [train, test] = ['train', 'test'].map((name) =>
      session.read.parquet(join(douban as string, `${name}.parquet`)),
    );
    const [without, withBiases] = await Promise.all(
      [plain, undamped].map(
        async (settings) =>
          (await (await new ALS({ ...settings, rank: 32, seed: 1 }).fit(train)).evaluate(test)).rmse,
      ),
    );
    expect(without - withBiases).toBeGreaterThan(0.01);
  });

  describe.each(sets.map(([name, rank, gain]) => ({ name, rank, gain, folder: dataFolder(name) })))(
    'biases lower the test RMSE of $name',
    ({ folder, rank, gain }) => {
      it.skipIf(!folder)(`by more than ${gain}`, async () => {
        const [train, test] = session.read
          .parquet(join(folder as string, 'ratings.parquet'))
          .randomSplit([0.9, 0.1], { seed: 2 });
        const [without, withBiases] = await Promise.all(
          [plain, undamped].map(
            async (settings) =>
              (await (await new ALS({ ...settings, rank, seed: 1 }).fit(train)).evaluate(test)).rmse,
          ),
        );
        expect(without - withBiases).toBeGreaterThan(gain);
      });
    },
  );
});
