/** The baselines beside a model's error, against means computed row by row in float64. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Baselines, type Model, Session, SGD } from '../../../index.ts';
import { randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';

let session: Session;
const folder = mkdtempSync(join(tmpdir(), 'factorflow-baselines-'));
beforeAll(async () => {
  session = await Session.create({ workers: 2, device: 'cpu' });
});
afterAll(async () => {
  await session.close();
  rmSync(folder, { recursive: true });
});

const dataset = (rows: readonly Triple[]) => session.from(ratingBatches(rows, 300));

/** Item means damped by 25, then user means of what is left damped by 10, over the pairs that both sides know. */
function slowBaselines(train: readonly Triple[], test: readonly Triple[]): Baselines {
  const mean = train.reduce((sum, { rating }) => sum + rating, 0) / train.length;
  const damped = (key: 'user' | 'item', damping: number, left: (row: Triple) => number) => {
    const groups = Map.groupBy(train, (row) => row[key]);
    return new Map([...groups].map(([id, rows]) => [id, rows.reduce((sum, row) => sum + left(row), 0) / (rows.length + damping)]));
  };
  const items = damped('item', 25, ({ rating }) => rating - mean);
  const users = damped('user', 10, ({ item, rating }) => rating - mean - (items.get(item) as number));
  const known = test.filter(({ user, item }) => users.has(user) && items.has(item));
  const errors = (predict: (row: Triple) => number) => {
    const all = known.map((row) => Math.abs(row.rating - predict(row)));
    return { rmse: Math.sqrt(all.reduce((sum, error) => sum + error ** 2, 0) / all.length), mae: all.reduce((sum, error) => sum + error, 0) / all.length };
  };
  return { mean: errors(() => mean), dampedMeans: errors(({ user, item }) => mean + (items.get(item) as number) + (users.get(user) as number)) };
}

function expectClose(found: Baselines | undefined, { mean, dampedMeans }: Baselines): void {
  const close = ({ rmse, mae }: Baselines['mean']) => ({ rmse: expect.closeTo(rmse, 5) as number, mae: expect.closeTo(mae, 5) as number });
  expect(found).toEqual({ mean: close(mean), dampedMeans: close(dampedMeans) });
}

describe.each([['more users', 90, 60], ['more items', 40, 130]])('with %s', (_, users, items) => {
  const rows = randomRatings(5, users, items, 2500);
  const repeated = rows.slice(0, 40).map((row) => ({ ...row, rating: 6 - row.rating }));
  const strangers: Triple[] = [{ user: 12_345, item: rows[0].item, rating: 5 }, { user: rows[0].user, item: 54_321, rating: 1 }];
  const [train, test] = [[...rows.slice(300), ...repeated], [...rows.slice(0, 300), ...strangers]];

  it.each([
    ['ALS', () => new ALS({ rank: 3, maxIter: 2, seed: 1 })],
    ['SGD', () => new SGD({ rank: 3, maxIter: 2, seed: 1, biases: false })],
    ['SGD with biases', () => new SGD({ rank: 3, maxIter: 2, seed: 1, biases: true })],
  ])('%s tells them for its validation set, and the saved model for any ratings', async (name, trainer) => {
    const model: Model = await trainer().fit(dataset(train), { validation: dataset(test) });
    expectClose(model.training?.baselines, slowBaselines(train, test));
    const path = join(folder, `${name} ${users}`);
    await model.save(path);
    for (const one of [model, await session.loadModel(path)]) {
      expectClose((await one.evaluate(dataset(test))).baselines, slowBaselines(train, test));
      expectClose((await one.evaluate(dataset(rows))).baselines, slowBaselines(train, rows));
    }
  });

  it('are the same bits for any order of rows', async () => {
    const baselines = async (order: readonly Triple[]) => (await new ALS({ rank: 2, maxIter: 1 }).fit(dataset(order), { validation: dataset(test) })).training?.baselines;
    expect(await baselines(shuffled(train, 3))).toEqual(await baselines(train));
  });
});

describe('a model without means', () => {
  it('says nothing of them: one that was updated, whose earlier ratings are not there', async () => {
    const rows = randomRatings(6, 50, 40, 1500);
    const model = await new ALS({ rank: 2, maxIter: 2 }).fit(dataset(rows.slice(0, 400)));
    const updated = await model.update(dataset(rows.slice(400, 600)), { validation: dataset(rows.slice(600)) });
    expect(updated.training).toMatchObject({ baselines: undefined, warnings: [] });
    expect(await updated.evaluate(dataset(rows))).not.toHaveProperty('baselines');
  });
});
