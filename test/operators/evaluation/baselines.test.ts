/** The baselines next to a model's error, against means computed row by row in float64. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, type Model, SGD } from '../../../index.ts';
import type { Baselines } from '../../../operators/evaluation/rating-facts.ts';
import { editMetadata } from '../../support/edit-metadata.ts';
import { randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const session = await cpuSession();

const dataset = (rows: readonly Triple[]) => session.from(ratingBatches(rows, 300));

interface Means {
  readonly mean: number;
  readonly users: Map<number, number>;
  readonly items: Map<number, number>;
}

function damped(
  rows: readonly Triple[],
  key: 'user' | 'item',
  damping: number,
  left: (row: Triple) => number,
): Map<number, number> {
  return new Map(
    [...Map.groupBy(rows, (row) => row[key])].map(([id, own]) => [
      id,
      own.reduce((sum, row) => sum + left(row), 0) / (own.length + damping),
    ]),
  );
}

/** Item means damped by 25, then user means of what is left damped by 10. */
function slowMeans(train: readonly Triple[]): Means {
  const mean = train.reduce((sum, { rating }) => sum + rating, 0) / train.length;
  const items = damped(train, 'item', 25, ({ rating }) => rating - mean);
  return {
    mean,
    items,
    users: damped(train, 'user', 10, ({ item, rating }) => rating - mean - (items.get(item) as number)),
  };
}

/** The errors over the pairs whose user and item are known. */
function errorsOf({ mean, users, items }: Means, test: readonly Triple[]): Baselines {
  const known = test.filter(({ user, item }) => users.has(user) && items.has(item));
  const errors = (predict: (row: Triple) => number) => {
    const all = known.map((row) => Math.abs(row.rating - predict(row)));
    return {
      rmse: Math.sqrt(all.reduce((sum, error) => sum + error ** 2, 0) / all.length),
      mae: all.reduce((sum, error) => sum + error, 0) / all.length,
    };
  };
  return {
    mean: errors(() => mean),
    dampedMeans: errors(({ user, item }) => mean + (items.get(item) as number) + (users.get(user) as number)),
  };
}

const slowBaselines = (train: readonly Triple[], test: readonly Triple[]) => errorsOf(slowMeans(train), test);

function expectClose(found: Baselines | undefined, { mean, dampedMeans }: Baselines): void {
  const close = ({ rmse, mae }: Baselines['mean']) => ({
    rmse: expect.closeTo(rmse, 5) as number,
    mae: expect.closeTo(mae, 5) as number,
  });
  expect(found).toEqual({ mean: close(mean), dampedMeans: close(dampedMeans) });
}

describe.each([
  ['more users', 90, 60, () => new ALS({ rank: 3, maxIter: 2, seed: 1 })],
  ['more items', 40, 130, () => new SGD({ rank: 3, maxIter: 2, seed: 1, biases: true })],
] as const)('with %s', (_, users, items, trainer) => {
  const rows = randomRatings(5, users, items, 2500);
  const repeated = rows.slice(0, 40).map((row) => ({ ...row, rating: 6 - row.rating }));
  const strangers: Triple[] = [
    { user: 12_345, item: rows[0].item, rating: 5 },
    { user: rows[0].user, item: 54_321, rating: 1 },
  ];
  const [train, test] = [
    [...rows.slice(300), ...repeated],
    [...rows.slice(0, 300), ...strangers],
  ];

  it('are told for a validation set, and by the saved model for any ratings', async () => {
    const model: Model = await trainer().fit(dataset(train), { validation: dataset(test) });
    expectClose(model.training?.baselines, slowBaselines(train, test));
    const path = join(folder, `${users}`);
    await model.save(path);
    for (const one of [model, await session.loadModel(path)]) {
      expectClose((await one.evaluate(dataset(test))).baselines, slowBaselines(train, test));
      expectClose((await one.evaluate(dataset(rows))).baselines, slowBaselines(train, rows));
    }
  });

  it('are the same bits for any order of rows', async () => {
    const baselines = async (order: readonly Triple[]) =>
      (await new ALS({ rank: 2, maxIter: 1 }).fit(dataset(order), { validation: dataset(test) })).training
        ?.baselines;
    expect(await baselines(shuffled(train, 3))).toEqual(await baselines(train));
  });
});

describe('an updated model', () => {
  const old = randomRatings(6, 50, 40, 1500);
  const added = old
    .slice(0, 40)
    .map((row, i): Triple =>
      i % 2 === 0 ? { ...row, user: 5000 + (i % 6) } : { ...row, item: 7000 + (i % 6) },
    );
  const rows = [...old, ...added];
  const [first, later, test] = [
    old.slice(0, 300),
    [...old.slice(300, 600), ...added.slice(10)],
    [...old.slice(600), ...added],
  ];

  it('keeps the means of its users and items, and has those of new ones from their ratings', async () => {
    const model = await new ALS({ rank: 2, maxIter: 2 }).fit(dataset(first));
    const updated = await model.update(dataset(later), { validation: dataset(test) });
    const { mean, users, items } = slowMeans(first);
    const known = { users: new Set(users.keys()), items: new Set(items.keys()) };
    const left = (row: Triple) => row.rating - mean;
    for (const [id, value] of damped(later, 'item', 25, left)) if (!known.items.has(id)) items.set(id, value);
    for (const [id, value] of damped(later, 'user', 10, (row) => left(row) - (items.get(row.item) as number)))
      if (!known.users.has(id)) users.set(id, value);
    expect([users.size > known.users.size, items.size > known.items.size]).toEqual([true, true]);
    expectClose(updated.training?.baselines, errorsOf({ mean, users, items }, test));
    expectClose((await updated.evaluate(dataset(rows))).baselines, errorsOf({ mean, users, items }, rows));
    expect(updated.training?.warnings.filter(({ code }) => code !== 'no-better-than-means')).toEqual([]);
  });

  it('has none where the first model has none, as one by Spark', async () => {
    const path = join(folder, 'without means');
    await (await new ALS({ rank: 2, maxIter: 2 }).fit(dataset(first))).save(path);
    for (const name of ['userMeans', 'itemMeans']) rmSync(join(path, name), { recursive: true });
    editMetadata(path, (line) => line.replace('"means":true', '"means":false'));
    const model = await session.loadModel(path);
    expect(await model.evaluate(dataset(rows))).not.toHaveProperty('baselines');
    const updated = await model.update(dataset(later), { validation: dataset(test) });
    expect(updated.training).toMatchObject({ baselines: undefined, warnings: [] });
    expect(await updated.evaluate(dataset(rows))).not.toHaveProperty('baselines');
  });
});
