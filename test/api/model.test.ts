import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import type { RecordBatch } from 'apache-arrow';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALS, Model, type ProgressEvent } from '../../index.ts';
import { batchOf, randomRatings, ratingBatches, type Triple } from '../support/ratings.ts';
import { editMetadata } from '../support/edit-metadata.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { cpuSession } from '../support/cpu-session.ts';

const rows = randomRatings(21, 90, 70, 2500);
const folder = temporaryFolder();
let model: Model;

const session = await cpuSession();
beforeAll(async () => {
  model = await ALS.spark({ rank: 5, regParam: 0.05, maxIter: 5, seed: 2 }).fit(
    session.from(ratingBatches(rows)),
  );
});

async function rowsOf(batches: AsyncIterable<RecordBatch>): Promise<Record<string, number>[]> {
  const all: Record<string, number>[] = [];
  for await (const batch of batches) for (const row of batch.toArray()) all.push(row.toJSON());
  return all;
}

/** Scores of a user by item id, computed from the factors that the model returns. */
function scoresOf(user: number): Map<number, number> {
  const [userIds, itemIds] = [model.userFactors, model.itemFactors].map((batch) =>
    Array.from(batch.data.children[0].values as Int32Array),
  );
  const [x, theta] = [model.userFactors, model.itemFactors].map(
    (batch) => batch.data.children[1].children[0].values as Float32Array,
  );
  const u = userIds.indexOf(user);
  return new Map(
    itemIds.map((item, v) => [
      item,
      Array.from({ length: 5 }, (_, i) => x[5 * u + i] * theta[5 * v + i]).reduce(
        (sum, term) => sum + term,
        0,
      ),
    ]),
  );
}

describe('a model', () => {
  it('predicts the product of factors for known pairs, and NaN or nothing for others', async () => {
    const pairs = [
      batchOf({
        user: { type: 'int32', values: [rows[0].user, 99_999, rows[1].user, null] },
        item: { type: 'int64', values: [BigInt(rows[1].item), 100n, 2n ** 40n, 100n] },
        note: { type: 'utf8', values: ['a', 'b', 'c', 'd'] },
      }),
    ];
    const predicted = await rowsOf(model.predict(session.from(pairs)));
    expect(predicted.map((row) => row.note)).toEqual(['a', 'b', 'c', 'd']);
    expect(predicted[0].prediction).toBeCloseTo(scoresOf(rows[0].user).get(rows[1].item) as number, 5);
    expect(predicted.slice(1).map((row) => row.prediction)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
    expect(
      (await rowsOf(model.predict(session.from(pairs), { coldStart: 'drop' }))).map((row) => row.note),
    ).toEqual(['a']);
  });

  it('evaluates known pairs and counts cold ones without averaging them in', async () => {
    const known = rows.slice(0, 50);
    const cold: Triple[] = [
      { user: 12_345, item: known[0].item, rating: 1e6 },
      { user: known[0].user, item: 54_321, rating: -1e6 },
    ];
    const { rmse, mae, pairs, coldPairs } = await model.evaluate(
      session.from(ratingBatches([...known, ...cold], 7)),
    );
    const errors = known.map(({ user, item, rating }) => rating - (scoresOf(user).get(item) as number));
    expect(rmse).toBeCloseTo(Math.sqrt(errors.reduce((sum, error) => sum + error * error, 0) / 50), 5);
    expect(mae).toBeCloseTo(errors.reduce((sum, error) => sum + Math.abs(error), 0) / 50, 5);
    expect([pairs, coldPairs]).toEqual([52, 2]);
  });

  it('recommends the best items of every user, best first, without the excluded', async () => {
    const recommended = await rowsOf(
      model.recommendForAllUsers(4, { exclude: session.from(ratingBatches(rows)) }),
    );
    const users = [...new Set(rows.map((row) => row.user))].sort((left, right) => left - right);
    expect([...new Set(recommended.map((row) => row.user))]).toEqual(
      users.filter((user) => recommended.some((row) => row.user === user)),
    );
    for (const user of users) {
      const seen = new Set(rows.filter((row) => row.user === user).map((row) => row.item));
      const expected = [...scoresOf(user)]
        .filter(([item]) => !seen.has(item))
        .sort((left, right) => right[1] - left[1])
        .slice(0, 4);
      const given = recommended.filter((row) => row.user === user);
      expect(given.map((row) => row.rank)).toEqual(expected.map((_, i) => i + 1));
      given.forEach((row, i) => expect(row.prediction).toBeCloseTo(expected[i][1], 4));
      expect(given.some((row) => seen.has(row.item))).toBe(false);
    }
  });

  it('survives saving and loading bit for bit, and the same model is the same bytes', async () => {
    const [first, second] = [join(folder, 'first'), join(folder, 'second')];
    await model.save(first);
    const again = await ALS.spark({ rank: 5, regParam: 0.05, maxIter: 5, seed: 2 }).fit(
      session.from(ratingBatches(rows.toReversed(), 33)),
    );
    await again.save(second);
    const files = readdirSync(first, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    expect(files.length).toBeGreaterThanOrEqual(3);
    for (const file of files)
      expect(readFileSync(file.replace(first, second)).equals(readFileSync(file))).toBe(true);
    const loaded = await session.loadModel(first);
    expect(loaded.userFactors.data.children[1].children[0].values).toEqual(
      model.userFactors.data.children[1].children[0].values,
    );
    expect(loaded.columns).toEqual(model.columns);
    expect(await loaded.evaluate(session.from(ratingBatches(rows)))).toEqual(
      await model.evaluate(session.from(ratingBatches(rows))),
    );
    const notes: unknown[] = [];
    const onEvent = (event: ProgressEvent) => notes.push(event);
    await session.loadModel(first, { onEvent });
    expect(notes).toEqual([]);
    editMetadata(first, (line) => line.replace(/,"files":\{.*?\}/, ''));
    await session.loadModel(first, { onEvent });
    expect(notes).toMatchObject([{ type: 'note', code: 'no-digests' }]);
    await expect(model.save(first)).rejects.toThrow(/exists/);
    await model.save(first, { overwrite: true });
  });

  it('is plain Parquet to DuckDB', async () => {
    const path = join(folder, 'for-duckdb');
    await model.save(path);
    const connection = await (await DuckDBInstance.create()).connect();
    const found = (
      await connection.runAndReadAll(
        `SELECT id, features FROM read_parquet('${path}/userFactors/*.parquet') ORDER BY id`,
      )
    ).getRowsJS();
    const ids = model.userFactors.getChildAt(0)?.toArray() as Int32Array;
    const values = model.userFactors.data.children[1].children[0].values as Float32Array;
    expect(found.map((row) => row[0])).toEqual([...ids]);
    found.forEach((row, i) => expect(row[1]).toEqual([...values.subarray(5 * i, 5 * i + 5)]));
  });
});

describe('the rank of a model with biases', () => {
  it('is the one that was asked for; Spark is told of the stored features', async () => {
    const trained = await new ALS({ rank: 3, maxIter: 2, biases: true }).fit(
      session.from(ratingBatches(rows)),
    );
    const path = join(folder, 'biases');
    await trained.save(path);
    const file = join(path, 'metadata/part-00000');
    const saved = JSON.parse(readFileSync(file, 'utf8')) as {
      rank: number;
      factorflow: { rank?: number; params?: object };
    };
    expect([saved.rank, saved.factorflow.rank]).toEqual([5, 3]);
    expect(saved).toMatchObject({
      class: 'org.apache.spark.ml.recommendation.ALSModel',
      sparkVersion: expect.stringMatching(/^3\./),
    });
    const loaded = async (change: object) => {
      editMetadata(path, () =>
        JSON.stringify({
          ...saved,
          checksum: undefined,
          factorflow: { ...saved.factorflow, ...change },
        }),
      );
      const { rank, features } = await Model.load(session, path);
      return [rank, features];
    };
    expect([trained.rank, trained.features]).toEqual([3, 5]);
    expect(await loaded({})).toEqual([3, 5]);
    expect(await loaded({ rank: undefined }), 'of an older release').toEqual([3, 5]);
    expect(await loaded({ rank: undefined, params: undefined }), 'of Spark').toEqual([5, 5]);
  });

  it('is not loaded where the features are too few', async () => {
    const path = join(folder, 'narrow');
    await ALS.spark({ rank: 2, maxIter: 1 })
      .fit(session.from(ratingBatches(rows)))
      .then((trained) => trained.save(path));
    editMetadata(path, (line) => line.replaceAll('"biases":false', '"biases":true'));
    await expect(Model.load(session, path)).rejects.toThrow(
      /the metadata contain biases, which are two features of 2 .*narrow/,
    );
  });
});
