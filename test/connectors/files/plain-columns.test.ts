import {
  Dictionary,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  LargeUtf8,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  Schema,
  Struct,
  Table,
  TimestampNanosecond,
  Utf8,
  Utf8View,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import type { Data, DataType } from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { plainBatches, plainSchema } from '../../../connectors/files/plain-columns.ts';
import { openSource } from '../../../connectors/open-source.ts';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { ParquetSource } from '../../../connectors/parquet/parquet-source.ts';
import { factorflow, json, quick } from '../../cli/run-cli.ts';
import { collect, context, duckRows, streamOf } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
const MARK = '\ufeff';
const names = [
  'a',
  `${MARK}a`,
  '',
  'a long text beyond twelve bytes',
  `${MARK}a long text beyond twelve bytes`,
  null,
  '漢字',
];
const texts = Array.from({ length: 70 }, (_, row) => names[(row * 3) % 7]);

function batchOf(columns: Readonly<Record<string, Vector>>): RecordBatch {
  return new Table(columns).batches[0];
}

/** Texts by their bytes, as Arrow's own decoder drops a byte order mark. */
function bytesOf(data: Data): (string | null)[] {
  const { valueOffsets, values } = data as Data<Utf8>;
  return Array.from({ length: data.length }, (_, row) =>
    data.getValid(row)
      ? Buffer.from(values.subarray(valueOffsets[row], valueOffsets[row + 1])).toString('utf8')
      : null,
  );
}

function expanded(batch: RecordBatch, column = 0): Data[] {
  return Array.from(plainBatches(batch), ({ data }) => data.children[column]);
}

const dictionaryOf = (type: DataType, values: Data, codes: Int32Array): Vector =>
  new Vector([
    makeData({
      type: new Dictionary(type, new Int32()),
      length: codes.length,
      nullCount: 0,
      data: codes,
      dictionary: new Vector([values]),
    } as never),
  ]);

describe('text keeps its bytes', () => {
  test.each([
    ['dictionary', new Dictionary(new Utf8(), new Int32())],
    ['dictionary of large text', new Dictionary(new LargeUtf8(), new Int32())],
    ['large text', new LargeUtf8()],
    ['views', new Utf8View()],
  ])('%s', (_name, type) => {
    const batch = batchOf({ id: vectorFromArray(texts, type) });
    expect(String(plainSchema(batch.schema).fields[0].type)).toBe('Utf8');
    expect(expanded(batch).flatMap(bytesOf)).toEqual(texts);
    // A slice begins in the middle of a bitmap's byte.
    expect(expanded(batch.slice(3, 40)).flatMap(bytesOf)).toEqual(texts.slice(3, 40));
  });

  test('a dictionary that grew, with nulls among its values', () => {
    const [first, second] = [
      vectorFromArray(['a', null], new Utf8()),
      vectorFromArray([`${MARK}b`, 'c'], new Utf8()),
    ];
    const data = makeData({
      type: new Dictionary(new Utf8(), new Int32()),
      length: 5,
      nullCount: 0,
      data: Int32Array.of(3, 1, 2, 0, 2),
      dictionary: first.concat(second),
    });
    expect(expanded(batchOf({ id: new Vector([data]) })).flatMap(bytesOf)).toEqual([
      'c',
      null,
      `${MARK}b`,
      'a',
      `${MARK}b`,
    ]);
  });
});

test('numbers behind a dictionary keep all their bits', () => {
  const nanoseconds = BigInt64Array.of(1112486027123456789n, -1n, 2n ** 62n + 1n);
  const stamps = dictionaryOf(
    new TimestampNanosecond(),
    makeData({ type: new TimestampNanosecond(), length: 3, nullCount: 0, data: nanoseconds as never }),
    Int32Array.of(2, 0, 1, 0),
  );
  expect((expanded(batchOf({ at: stamps }))[0].values as unknown as BigInt64Array).slice(0, 4)).toEqual(
    BigInt64Array.of(2n ** 62n + 1n, 1112486027123456789n, -1n, 1112486027123456789n),
  );
  const wide = dictionaryOf(
    new Int64(),
    makeData({
      type: new Int64(),
      length: 2,
      nullCount: 0,
      data: BigInt64Array.of(2n ** 53n + 1n, 7n) as never,
    }),
    Int32Array.of(1, 0),
  );
  expect((expanded(batchOf({ id: wide }))[0].values as unknown as BigInt64Array).slice(0, 2)).toEqual(
    BigInt64Array.of(7n, 2n ** 53n + 1n),
  );
  const real = dictionaryOf(
    new Float64(),
    makeData({ type: new Float64(), length: 2, nullCount: 0, data: Float64Array.of(-0, 5e-324) }),
    Int32Array.of(0, 1),
  );
  expect(
    [...(expanded(batchOf({ x: real }))[0].values as Float64Array)].map(
      (value) => Object.is(value, -0) || value === 5e-324,
    ),
  ).toEqual([true, true]);
});

describe('text that stands once for many rows comes in parts', () => {
  const long = 'x'.repeat(1 << 16);
  const rows = 1100;
  const codes = Int32Array.from({ length: rows }, (_, row) => (row % 500 === 0 ? 1 : 0));
  const users = dictionaryOf(new Utf8(), vectorFromArray([long, 'y'], new Utf8()).data[0], codes);
  const items = new Vector([
    makeData({
      type: new Int32(),
      length: rows,
      nullCount: 0,
      data: Int32Array.from({ length: rows }, (_, row) => row % 50),
    }),
  ]);
  const ratings = new Vector([
    makeData({
      type: new Float32(),
      length: rows,
      nullCount: 0,
      data: Float32Array.from({ length: rows }, (_, row) => 1 + (row % 5)),
    }),
  ]);
  const bomb = batchOf({ user: users, item: items, rating: ratings });

  /** Checks the rows of a source, batch by batch; gives the most bytes that a batch has. */
  async function readAll(file: string): Promise<number> {
    let [row, most] = [0, 0];
    const stream = await (await openSource(file)).execute(context() as never);
    for await (const { data } of stream) {
      const [user, item] = data.children;
      most = Math.max(most, user.valueOffsets[user.length] - user.valueOffsets[0]);
      for (let i = 0; i < data.length; i++, row++) {
        if (user.valueOffsets[i + 1] - user.valueOffsets[i] !== (codes[row] === 1 ? 1 : 1 << 16))
          throw new Error(`row ${row} has another user`);
        if ((item.values as Int32Array)[i] !== row % 50) throw new Error(`row ${row} has another item`);
      }
    }
    expect(row).toBe(rows);
    return most;
  }

  test('Arrow', async () => {
    const file = join(folder, 'bomb.arrow');
    writeFileSync(file, await RecordBatchFileWriter.writeAll(new Table(bomb)).toUint8Array());
    expect(await readAll(file)).toBeLessThanOrEqual(1 << 26);
  });

  test('Parquet, by dictionary columns and by plain ones', async () => {
    for (const name of ['hinted', 'plain']) {
      const file = join(folder, `${name}.parquet`);
      const batches = name === 'plain' ? [...plainBatches(bomb)] : [bomb];
      await new ParquetSink(file, { codec: 'zstd' }).consume(streamOf(batches[0].schema, batches), context());
      expect(await readAll(file)).toBeLessThanOrEqual(1 << 26);
    }
  });
});

describe('the command line', () => {
  const stamps = Array.from({ length: 60 }, (_, row) => 1112486027000000001n + BigInt(row % 7));
  const users = Array.from({ length: 60 }, (_, row) => `${row % 2 ? MARK : ''}u${(row * 7) % 5}`);
  const items = Array.from({ length: 60 }, (_, row) => `${row % 3 ? '' : MARK}i${row % 4}`);
  const file = join(folder, 'marks.arrow');
  const text = () => new Dictionary(new Utf8(), new Int32());
  const distinct = BigInt64Array.from(new Set(stamps));
  const at = dictionaryOf(
    new TimestampNanosecond(),
    makeData({ type: new TimestampNanosecond(), length: 7, nullCount: 0, data: distinct as never }),
    Int32Array.from(stamps, (stamp) => distinct.indexOf(stamp)),
  );
  const rating = vectorFromArray(
    Array.from({ length: 60 }, (_, row) => 1 + (row % 5)),
    new Float32(),
  );
  const columns = { user: vectorFromArray(users, text()), item: vectorFromArray(items, text()), rating, at };
  const schema = new Schema(
    Object.entries(columns).map(([name, vector]) => new Field(name, vector.type, false)),
  );
  const children = Object.values(columns).map((vector) => vector.data[0]);
  const batch = new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: 60, nullCount: 0, children }),
  );

  test('train, predict and convert tell texts with a byte order mark from those without, and keep nanoseconds', async () => {
    writeFileSync(file, await RecordBatchFileWriter.writeAll(new Table(batch)).toUint8Array());
    const model = join(folder, 'model');
    const trained = await json('train', file, '--model-dir', model, ...quick);
    expect(trained).toMatchObject({ users: new Set(users).size, items: new Set(items).size, ratings: 60 });

    const predicted = join(folder, 'predicted.parquet');
    expect((await factorflow('predict', model, file, '--output', predicted)).code).toBe(0);
    expect(
      await duckRows(
        `SELECT count(DISTINCT hex("user")), count(DISTINCT hex(item)), count(*) FILTER (WHERE isnan(prediction)) FROM '${predicted}'`,
      ),
    ).toEqual([[BigInt(new Set(users).size), BigInt(new Set(items).size), 0n]]);

    const [parquet, csv, back] = ['c.parquet', 'c.csv', 'd.parquet'].map((name) => join(folder, name));
    await json('convert', file, parquet);
    await json('convert', parquet, csv);
    await json('convert', csv, back, '--types', 'user=utf8,item=utf8');
    const kept = users.map((user, row) => [
      Buffer.from(user).toString('hex').toUpperCase(),
      Buffer.from(items[row]).toString('hex').toUpperCase(),
    ]);
    for (const output of [parquet, back])
      expect(await duckRows(`SELECT hex("user"), hex(item) FROM '${output}'`)).toEqual(kept);
    expect(await duckRows(`SELECT epoch_ns("at") FROM '${parquet}'`)).toEqual(stamps.map((stamp) => [stamp]));
    const [read] = await collect(await new ParquetSource(parquet).execute(context()));
    expect((read.data.children[3].values as unknown as BigInt64Array).slice(0, 60)).toEqual(
      BigInt64Array.from(stamps),
    );
  });
});
