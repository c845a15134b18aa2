import { Int32, Int64, makeVector, Utf8, vectorFromArray } from 'apache-arrow';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkModelDirectory, loadModel, saveModel } from '../../../connectors/model/model-store.ts';
import type { StoredModel } from '../../../connectors/model/model-store.ts';
import { CancelledError, UsageError } from '../../../engine/errors.ts';
import { duckRows, plain } from '../parquet/parquet-testing.ts';
import { factors, items, model, path, rank, root, users } from './stored-models.ts';

const words = vectorFromArray(['', 'a', 'ab', 'b', 'ä', '\u{1F600}'], new Utf8());
const longs = vectorFromArray([-(2n ** 60n), 3n, 2n ** 53n + 1n], new Int64());

function files(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Object.fromEntries(
    names.map((entry) => [
      join(entry.parentPath, entry.name).slice(directory.length),
      readFileSync(join(entry.parentPath, entry.name)).toString('base64'),
    ]),
  );
}

describe('a round trip', () => {
  test.each([
    ['int32', users, items],
    ['utf8 and int64', words, longs],
    ['no users', users.slice(0, 0), items],
  ])('with ids %s', async (name, userIds, itemIds) => {
    const saved = model(userIds, itemIds);
    await saveModel(path(name), saved);
    const loaded = await loadModel(path(name));
    expect([...loaded.userIds]).toEqual([...userIds]);
    expect([...loaded.itemIds]).toEqual([...itemIds]);
    expect(String(loaded.userIds.type)).toBe(String(userIds.type));
    expect([...loaded.userFactors]).toEqual([...saved.userFactors]);
    expect([...loaded.itemFactors]).toEqual([...saved.itemFactors]);
    const { rank, columns, coldStartStrategy, factorflow } = saved;
    expect(loaded).toMatchObject({ rank, columns, coldStartStrategy });
    expect(loaded.factorflow).toEqual(factorflow);
  });
});

test('the layout is that of an ALSModel, and DuckDB reads it', async () => {
  await saveModel(path('layout'), model(users, items), { timestamp: 1700000000000, uid: 'ALSModel_abc' });
  expect(Object.keys(files(path('layout'))).sort()).toEqual([
    '/itemFactors/part-00000.parquet',
    '/metadata/part-00000',
    '/userFactors/part-00000.parquet',
  ]);
  const text = readFileSync(path('layout/metadata/part-00000'), 'utf8');
  expect(text.split('\n')).toHaveLength(2);
  expect(JSON.parse(text)).toMatchObject({
    class: 'org.apache.spark.ml.recommendation.ALSModel',
    timestamp: 1700000000000,
    uid: 'ALSModel_abc',
    paramMap: { userCol: 'userId', itemCol: 'movieId', predictionCol: 'guess', coldStartStrategy: 'drop' },
    defaultParamMap: {
      userCol: 'user',
      itemCol: 'item',
      predictionCol: 'prediction',
      coldStartStrategy: 'nan',
      blockSize: 4096,
    },
    rank: 4,
    factorflow: { algorithm: 'als', storage: { users: 5, items: 3, sparkReadable: true } },
  });
  const rows = await duckRows(`SELECT id, features FROM '${path('layout')}/userFactors/*.parquet'`);
  expect(rows.map(plain)).toEqual(
    [...users].map((id, row) => [id, [...factors(5).subarray(row * rank, (row + 1) * rank)]]),
  );
  const types = await duckRows(
    `SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '${path('layout')}/itemFactors/*.parquet')`,
  );
  expect(types).toEqual([
    ['id', 'INTEGER'],
    ['features', 'FLOAT[]'],
  ]);
  const schema = await duckRows(
    `SELECT name FROM parquet_schema('${path('layout')}/itemFactors/part-00000.parquet')`,
  );
  expect(schema.flat()).toEqual(['arrow_schema', 'id', 'features', 'list', 'element']);
});

test('ids that Spark does not know are said in the metadata', async () => {
  await saveModel(path('said'), model(words, longs));
  expect(JSON.parse(readFileSync(path('said/metadata/part-00000'), 'utf8'))).toMatchObject({
    factorflow: {
      storage: {
        sparkReadable: false,
        userIdType: 'utf8',
        itemIdType: 'int64',
        reason: expect.stringContaining('int32 ids only') as string,
      },
    },
  });
});

test('the same model is the same bytes, however its ids are chunked', async () => {
  await saveModel(path('same-1'), model(words, longs));
  await saveModel(path('same-2'), model(words.slice(0, 2).concat(words.slice(2)), longs));
  expect(files(path('same-1'))).toEqual(files(path('same-2')));
  await saveModel(path('same-2'), model(words, longs, { factorflow: {} }), { overwrite: true });
  expect(files(path('same-1'))).not.toEqual(files(path('same-2')));
});

describe('saving', () => {
  test('checks what it is given', async () => {
    const save = (wrong: StoredModel) => saveModel(path('never'), wrong);
    await expect(save(model(makeVector(Int32Array.of(2, 1)), items))).rejects.toThrow(
      /user ids must ascend: 1 in row 2 comes after 2/,
    );
    await expect(save(model(vectorFromArray(['a', 'a'], new Utf8()), items))).rejects.toThrow(
      /must ascend: "a" in row 2/,
    );
    await expect(save(model(vectorFromArray([1, null], new Int32()), items))).rejects.toThrow(
      /1 user ids are null/,
    );
    await expect(save(model(makeVector(Float64Array.of(1, 2)), items))).rejects.toThrow(
      /need int32, int64 or utf8/,
    );
    await expect(save(model(users, items, { itemFactors: new Float32Array(5) }))).rejects.toThrow(
      /item factors have 5 values, need 3 x 4/,
    );
    expect(existsSync(path('never'))).toBe(false);
  });

  test('replaces a model only when asked, and never anything else', async () => {
    await saveModel(path('again'), model(users, items));
    await expect(saveModel(path('again'), model(users, items))).rejects.toThrow(UsageError);
    await expect(checkModelDirectory(path('again'))).rejects.toThrow(/pass overwrite: true/);
    await saveModel(path('again'), model(words, items), { overwrite: true });
    expect((await loadModel(path('again'))).userIds.length).toBe(6);
    writeFileSync(path('again/userFactors/notes.txt'), 'mine');
    await expect(saveModel(path('again'), model(users, items), { overwrite: true })).rejects.toThrow(
      /notes.txt/,
    );
    expect(readdirSync(root).filter((name) => name.startsWith('.'))).toEqual([]);
  });
});

test('a model that others replace meanwhile is one of theirs, whole; none of them fails, and nothing is left beside it', async () => {
  const place = path('busy');
  await saveModel(place, model(users, items));
  const state = { writing: true };
  const write = async (value: number) => {
    for (let i = 0; i < 8; i++)
      await saveModel(
        place,
        model(users, items, { userFactors: factors(5).fill(value), itemFactors: factors(3).fill(value) }),
        { overwrite: true },
      );
  };
  const read = async () => {
    while (state.writing) {
      const { userFactors, itemFactors } = await loadModel(place);
      expect(new Set([...userFactors, ...itemFactors]).size === 1 || userFactors[1] === factors(5)[1]).toBe(
        true,
      );
    }
  };
  await Promise.all([
    Promise.all([write(1), write(2), write(3)]).finally(() => (state.writing = false)),
    read(),
    read(),
  ]);
  expect(readdirSync(root).filter((name) => name.startsWith('.busy'))).toEqual([]);
});

test('a cancelled save leaves the old model, and nothing beside it', async () => {
  await saveModel(path('kept'), model(users, items));
  const before = files(path('kept'));
  for (const ticks of [0, 1, 3, 10, 30, 100]) {
    const controller = new AbortController();
    const saving = saveModel(path('kept'), model(users, items, { coldStartStrategy: 'nan' }), {
      overwrite: true,
      signal: controller.signal,
    });
    const outcome = expect(saving).rejects.toBeInstanceOf(CancelledError);
    for (let i = 0; i < ticks; i++) await Promise.resolve();
    controller.abort();
    await outcome;
    expect(files(path('kept'))).toEqual(before);
  }
  expect(readdirSync(root).filter((name) => name.startsWith('.kept'))).toEqual([]);
});
