import {
  Field,
  Float32,
  Int32,
  Int64,
  List,
  makeData,
  makeVector,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { Vector } from 'apache-arrow';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkModelDirectory, loadModel, saveModel } from '../../../connectors/model/model-store.ts';
import type { StoredModel } from '../../../connectors/model/model-store.ts';
import { parquetBackend } from '../../../connectors/parquet/backends.ts';
import { CancelledError, DataError, UsageError } from '../../../engine/errors.ts';
import { duckdb, duckRows, plain, temporaryFolder } from '../parquet/parquet-testing.ts';

const root = temporaryFolder();
const path = (name: string) => join(root, name);
const rank = 4;

function factors(rows: number, width = rank): Float32Array {
  return Float32Array.from({ length: rows * width }, (_, i) => Math.fround(Math.sin(i + rows)));
}

function model(userIds: Vector, itemIds: Vector, more: Partial<StoredModel> = {}): StoredModel {
  return {
    rank,
    userIds,
    userFactors: factors(userIds.length),
    itemIds,
    itemFactors: factors(itemIds.length),
    columns: { user: 'userId', item: 'movieId', rating: 'stars', prediction: 'guess' },
    coldStartStrategy: 'drop',
    factorflow: { algorithm: 'als', training: { regParam: 0.05, maxIter: 3 }, metrics: [1, 2.5] },
    ...more,
  };
}

const users = makeVector(Int32Array.of(-5, 1, 2, 3, 900));
const items = makeVector(Int32Array.of(10, 20, 30));
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

  test('with more rows than a batch', async () => {
    const rows = 700;
    const width = 4096;
    const big = model(makeVector(Int32Array.from({ length: rows }, (_, i) => i * 2)), items, {
      rank: width,
      userFactors: factors(rows, width),
      itemFactors: factors(3, width),
    });
    await saveModel(path('batches'), big);
    const loaded = await loadModel(path('batches'));
    expect(
      Buffer.compare(
        Buffer.from(new Uint8Array(loaded.userFactors.buffer)),
        Buffer.from(big.userFactors.buffer),
      ),
    ).toBe(0);
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

describe("a model of Spark's", () => {
  async function sparkModel(
    name: string,
    element: string,
    codec: 'gzip' | 'snappy',
    ids: number[][],
  ): Promise<string> {
    for (const side of ['userFactors', 'itemFactors']) {
      mkdirSync(path(`${name}/${side}`), { recursive: true });
      writeFileSync(path(`${name}/${side}/_SUCCESS`), '');
      const list = new List(new Field(element, new Float32(), false));
      const schema = new Schema([new Field('id', new Int32(), false), new Field('features', list, true)]);
      for (const [part, some] of ids.entries()) {
        const child = makeVector(Float32Array.from(some.flatMap((id) => [id, id + 0.5]))).data[0];
        const features = makeData({
          type: list,
          length: some.length,
          nullCount: 0,
          valueOffsets: Int32Array.from({ length: some.length + 1 }, (_, i) => i * 2),
          child,
        });
        const children = [makeVector(Int32Array.from(some)).data[0], features];
        const file = `part-0000${part}-d3bd-c000.${codec}.parquet`;
        const writer = await (
          await parquetBackend()
        ).create(path(`${name}/${side}/${file}`), schema, { codec, rowGroupSize: 100 });
        await writer.write(
          new RecordBatch(
            schema,
            makeData({ type: new Struct(schema.fields), length: some.length, nullCount: 0, children }),
          ),
        );
        await writer.close();
        writeFileSync(path(`${name}/${side}/.${file}.crc`), 'crc');
      }
    }
    mkdirSync(path(`${name}/metadata`));
    writeFileSync(path(`${name}/metadata/_SUCCESS`), '');
    writeFileSync(path(`${name}/metadata/.part-00000.crc`), 'crc');
    writeFileSync(path(`${name}/metadata/part-00000`), '');
    writeFileSync(
      path(`${name}/metadata/part-00001`),
      '{"class":"org.apache.spark.ml.recommendation.ALSModel","timestamp":1512000000000,"sparkVersion":"3.5.1","uid":"als_1","paramMap":{"userCol":"u"},"defaultParamMap":{"blockSize":4096,"coldStartStrategy":"NaN"},"rank":2}\n',
    );
    return path(name);
  }

  test.each([
    ['element', 'snappy'],
    ['array', 'gzip'],
  ] as const)('with lists of "%s", codec %s, unsorted parts and no key of ours', async (element, codec) => {
    const loaded = await loadModel(
      await sparkModel(`spark-${element}`, element, codec, [[4, 2], [], [9, 1, 3]]),
    );
    expect([...loaded.userIds]).toEqual([1, 2, 3, 4, 9]);
    expect([...loaded.userFactors]).toEqual([1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 9, 9.5]);
    expect(loaded).toMatchObject({
      rank: 2,
      columns: { user: 'u', item: 'item', rating: 'rating', prediction: 'prediction' },
      coldStartStrategy: 'nan',
      factorflow: {},
    });
  });

  test('with an id twice is refused', async () => {
    await expect(
      sparkModel('spark-twice', 'element', 'snappy', [[4, 2], [2]]).then(loadModel),
    ).rejects.toThrow(/the id 2 occurs twice .*userFactors/);
  });
});

describe('loading refuses', () => {
  const damaged = async (name: string, damage: (directory: string) => void | Promise<unknown>) => {
    if (!existsSync(path('whole'))) await saveModel(path('whole'), model(users, items));
    cpSync(path('whole'), path(name), { recursive: true });
    await damage(path(name));
    const error: unknown = await loadModel(path(name)).catch((problem: unknown) => problem);
    expect(error).toBeInstanceOf(DataError);
    return String(error);
  };
  const rewrite = (directory: string, change: (metadata: Record<string, unknown>) => unknown) => {
    const file = join(directory, 'metadata/part-00000');
    writeFileSync(
      file,
      JSON.stringify(change(JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>)),
    );
  };
  const factorsFrom = async (directory: string, query: string) => {
    await (
      await duckdb()
    ).run(`COPY (${query}) TO '${join(directory, 'userFactors/part-00000.parquet')}' (FORMAT parquet)`);
  };

  test('a missing or foreign piece', async () => {
    expect(await damaged('no-users', (at) => rmSync(join(at, 'userFactors'), { recursive: true }))).toMatch(
      /the folder is missing .*userFactors/,
    );
    expect(await damaged('no-parts', (at) => rmSync(join(at, 'itemFactors/part-00000.parquet')))).toMatch(
      /no part files here .*itemFactors/,
    );
    expect(await damaged('notes', (at) => writeFileSync(join(at, 'itemFactors/notes.txt'), ''))).toMatch(
      /"notes.txt" does not belong to a model/,
    );
    expect(
      await damaged('extra', (at) =>
        cpSync(join(at, 'itemFactors/part-00000.parquet'), join(at, 'itemFactors/part-00001.parquet')),
      ),
    ).toMatch(/occurs twice/);
    expect(
      await damaged('fewer', (at) =>
        factorsFrom(at, 'SELECT 1::INTEGER AS id, [1, 2, 3, 4]::FLOAT[] AS features'),
      ),
    ).toMatch(/missing or foreign: 1 row, and the metadata say 5/);
    await expect(loadModel(path('nowhere'))).rejects.toThrow(/no such file or folder/);
    await expect(loadModel(path('whole/metadata/part-00000'))).rejects.toThrow(/a file, not a model/);
  });

  test('metadata that say something else', async () => {
    expect(await damaged('class', (at) => rewrite(at, (all) => ({ ...all, class: 'KMeansModel' })))).toMatch(
      /the class is "KMeansModel".*metadata\/part-00000/,
    );
    expect(await damaged('rank', (at) => rewrite(at, (all) => ({ ...all, rank: 5 })))).toMatch(
      /has 4 values, and the model's rank is 5 .*part-00000.parquet, row group 0, row 1/,
    );
    expect(await damaged('rank-text', (at) => rewrite(at, (all) => ({ ...all, rank: 'ten' })))).toMatch(
      /the rank is "ten"/,
    );
    expect(await damaged('rank-huge', (at) => rewrite(at, (all) => ({ ...all, rank: 1e15 })))).toMatch(
      /the rank is/,
    );
    expect(
      await damaged('json', (at) => writeFileSync(join(at, 'metadata/part-00000'), '{"class":')),
    ).toMatch(/not JSON/);
    expect(await damaged('blank', (at) => writeFileSync(join(at, 'metadata/part-00000'), '\n'))).toMatch(
      /no metadata/,
    );
    expect(
      await damaged('cold', (at) =>
        rewrite(at, (all) => ({ ...all, paramMap: { coldStartStrategy: 'warm' } })),
      ),
    ).toMatch(/coldStartStrategy is "warm"/);
  });

  test('factors that are none', async () => {
    const features = (values: string) => `SELECT i::INTEGER AS id, ${values} AS features FROM range(5) t(i)`;
    expect(
      await damaged('ragged', (at) =>
        factorsFrom(at, features('CASE WHEN i = 3 THEN [1, 2]::FLOAT[] ELSE [1, 2, 3, 4]::FLOAT[] END')),
      ),
    ).toMatch(/has 2 values.*row 4/);
    expect(
      await damaged('nan', (at) => factorsFrom(at, features("['NaN'::FLOAT, 1, 2, 3]::FLOAT[]"))),
    ).toMatch(/5 of 20 features are NaN/);
    expect(
      await damaged('null-value', (at) => factorsFrom(at, features('[1, NULL, 2, 3]::FLOAT[]'))),
    ).toMatch(/a feature is null/);
    expect(
      await damaged('null-vector', (at) =>
        factorsFrom(at, features('CASE WHEN i = 1 THEN NULL ELSE [1, 2, 3, 4]::FLOAT[] END')),
      ),
    ).toMatch(/vector is null/);
    expect(await damaged('doubles', (at) => factorsFrom(at, features('[1, 2, 3, 4]::DOUBLE[]')))).toMatch(
      /need a list of float/,
    );
    expect(await damaged('columns', (at) => factorsFrom(at, 'SELECT 1 AS a'))).toMatch(
      /not those of factors.*a: Int32/,
    );
    expect(
      await damaged('cut', (at) =>
        writeFileSync(join(at, 'userFactors/part-00000.parquet'), 'PAR1 and no more'),
      ),
    ).toMatch(/cut off.*userFactors/);
  });
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
    for (let i = 0; i < 20; i++)
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
