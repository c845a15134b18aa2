import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { Int32, makeData, makeVector, Table } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset } from '../../index.ts';
import { ListHistories } from '../../operators/ratings/histories.ts';
import { batchOf, randomRatings, ratingBatches } from '../support/ratings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { cpuSession } from '../support/cpu-session.ts';

const rows = randomRatings(3, 40, 30, 600);
const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const als = ALS.spark({ rank: 3, maxIter: 2 });
const sorted = [...rows]
  .sort((left, right) => left.user - right.user || left.item - right.item)
  .map(({ user, item, rating }) => ({ user, item, rating: Math.fround(rating) }));

const session = await cpuSession();
beforeAll(async () => {
  await session.from(ratingBatches(rows)).write.parquet(at('ratings'));
  const model = await als.fit(session.read.parquet(at('ratings')));
  await model.save(at('model'), { histories: true });
});

async function rowsOf(dataset: Dataset | undefined): Promise<unknown[]> {
  return (await dataset?.toArray()) ?? [];
}

describe('histories', () => {
  it('are lists of item and weight for each user, in Parquet that others read', async () => {
    const connection = await (await DuckDBInstance.create()).connect();
    const found = await connection.runAndReadAll(
      `from (select id, unnest(items) item, unnest(weights) weight from '${at('model')}/userHistories/*.parquet')`,
    );
    expect(found.getRowObjectsJS()).toEqual(
      sorted.map(({ user: id, item, rating: weight }) => ({ id, item, weight })),
    );
  });

  it('come back with the model, which excludes them from its rankings', async () => {
    const model = await session.loadModel(at('model'));
    expect(await rowsOf(model.histories)).toEqual(sorted);
    const test = session.from(
      ratingBatches(rows.slice(0, 50).map((row) => ({ ...row, item: row.item + 1 }))),
    );
    const train = session.read.parquet(at('ratings'));
    const ranked = await model.evaluateRanking(test, { resamples: 0 });
    expect(ranked).toEqual(await model.evaluateRanking(test, { resamples: 0, exclude: train }));
    expect(ranked.warnings.map(({ code }) => code)).not.toContain('nothing-excluded');
    const lists = await model.recommendForAllUsers(30, { exclude: model.histories }).toArray();
    expect(lists.length + sorted.length).toBe(model.userCount * model.itemCount);
  });

  it('are saved again from a loaded model and after an update, where the newest rating of a pair counts', async () => {
    const model = await session.loadModel(at('model'));
    await model.save(at('again'), { histories: true });
    expect(await rowsOf((await session.loadModel(at('again'))).histories)).toEqual(sorted);
    const [{ user, item }] = sorted;
    const later = [
      { user, item, rating: 1 },
      { user: 9999, item, rating: 2 },
    ];
    // Of 64 bits, where the model's ids have 32.
    const wide = session.from(ratingBatches(later)).cast({ user: 'int64', item: 'int64' });
    await wide.write.parquet(at('later'));
    const updated = await model.update(session.read.parquet(at('later')));
    await updated.save(at('updated'), { histories: true });
    const found = await rowsOf(
      (await session.loadModel(at('updated'))).histories?.cast({ user: 'int32', item: 'int32' }),
    );
    expect(found).toEqual([{ ...sorted[0], rating: 1 }, ...sorted.slice(1), { user: 9999, item, rating: 2 }]);
  });

  it('of rows in memory are given to save; a model saved without them has none', async () => {
    const ratings = session.from(ratingBatches(rows));
    const model = await als.fit(ratings);
    await expect(model.save(at('memory'), { histories: true })).rejects.toThrow(
      'the model does not have the ratings of its training, which were not read from files. Give them: histories: ratings',
    );
    await model.save(at('memory'), { histories: ratings });
    expect(await rowsOf((await session.loadModel(at('memory'))).histories)).toEqual(sorted);
    await model.save(at('memory'), { overwrite: true });
    expect((await session.loadModel(at('memory'))).histories).toBeUndefined();
    expect(readdirSync(at('memory'))).not.toContain('userHistories');
  });

  it('of text and of 64 bits compare whole ids', async () => {
    const users = ['', 'a', 'ab', 'ab', 'ü'];
    const items = [-1n, 2n ** 40n, 1n, 2n ** 40n + 1n, 1n];
    const ratings = session.from([
      batchOf({
        user: { type: 'utf8', values: users },
        item: { type: 'int64', values: items },
        rating: { type: 'float32', values: [1, 2, 3, 4, 5] },
      }),
    ]);
    await (await als.fit(ratings)).save(at('text'), { histories: ratings });
    const found = await rowsOf((await session.loadModel(at('text'))).histories);
    expect(found).toEqual(users.map((user, row) => ({ user, item: items[row], rating: row + 1 })));
  });

  it('of users with more ratings than a batch stay one list', async () => {
    const rows = 150_000;
    const ids = (user: (row: number) => number) =>
      makeData({ type: new Int32(), data: Int32Array.from({ length: rows }, (_, row) => user(row)) });
    const columns = {
      user: makeVector(ids((row) => (row < 10 || row >= rows - 10 ? row : 100))),
      item: makeVector(ids((row) => row)),
      rating: makeVector(new Float32Array(rows)),
    };
    const lists = await session
      .from(new Table(columns).batches.flatMap((batch) => [batch.slice(0, 140_000), batch.slice(140_000)]))
      .pipe(new ListHistories())
      .toArray();
    expect(lists.map(({ items }) => (items as unknown[]).length)).toEqual([
      ...Array(10).fill(1),
      rows - 20,
      ...Array(10).fill(1),
    ]);
  });
});
