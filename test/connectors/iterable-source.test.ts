import { makeVector, RecordBatch, Table, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import { iterableSource } from '../../connectors/iterable-source.ts';
import { CancelledError, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { originOf } from '../../engine/stream/stream.ts';
import { arrowRows, collect, context } from './parquet/parquet-testing.ts';

const batch = (...items: number[]): RecordBatch =>
  new Table({ item: makeVector(Int32Array.from(items)) }).batches[0];

/** Gives batches one by one and notes the calls. */
function recorded(batches: readonly RecordBatch[]) {
  const seen = { pulled: 0, returned: 0 };
  async function* run() {
    try {
      for (const one of batches) {
        seen.pulled++;
        yield one;
      }
    } finally {
      seen.returned++;
    }
  }
  return { seen, iterable: run() };
}

test('an array of batches can be read again', async () => {
  const source = iterableSource([batch(1, 2), batch(3)]);
  expect(source.replayable).toBe(true);
  for (let time = 0; time < 2; time++) {
    const batches = await collect(await source.execute(context()));
    expect(arrowRows(batches)).toEqual([[1], [2], [3]]);
    expect(batches.map((one) => originOf(one)?.firstRow)).toEqual([0, 2]);
  }
});

test('an iterator is read once; looking at the schema loses nothing', async () => {
  const { iterable, seen } = recorded([batch(1), batch(2)]);
  const source = iterableSource(iterable);
  expect(source.replayable).toBe(false);
  expect(seen.pulled).toBe(0);
  expect(String(await source.schema())).toContain('item: Int32');
  expect(seen.pulled).toBe(1);
  expect(arrowRows(await collect(await source.execute(context())))).toEqual([[1], [2]]);
  await expect(source.execute(context())).rejects.toThrow(UsageError);
  await expect(source.execute(context())).rejects.toThrow(/only once/);
});

test('a given schema is not looked for', async () => {
  const { iterable, seen } = recorded([batch(1)]);
  const source = iterableSource(iterable, batch(1).schema);
  await source.schema();
  await source.execute(context());
  expect(seen.pulled).toBe(0);
});

test('leaving early returns the iterator, and nothing is pulled ahead', async () => {
  const { iterable, seen } = recorded([batch(1), batch(2), batch(3)]);
  for await (const _ of await iterableSource(iterable, batch(1).schema).execute(context())) break;
  expect(seen).toEqual({ pulled: 1, returned: 1 });
});

test('the signal returns the iterator', async () => {
  const { iterable, seen } = recorded([batch(1), batch(2), batch(3)]);
  const controller = new AbortController();
  const run = async () => {
    for await (const _ of await iterableSource(iterable).execute(context(controller.signal)))
      controller.abort();
  };
  await expect(run()).rejects.toThrow(CancelledError);
  expect(seen).toEqual({ pulled: 2, returned: 1 });
});

test('a batch of another schema is named by number and column', async () => {
  const other = new Table({ item: vectorFromArray(['a']) }).batches[0];
  const renamed = new Table({ thing: makeVector(Int32Array.of(1)) }).batches[0];
  const more = new Table({ item: makeVector(Int32Array.of(1)), b: makeVector(Int32Array.of(1)) }).batches[0];
  const read = async (...batches: RecordBatch[]) => collect(await iterableSource(batches).execute(context()));
  await expect(read(batch(1), other)).rejects.toThrow(
    /batch 1 has column "item" of .*Utf8.* where the schema has "item" of Int32/,
  );
  await expect(read(batch(1), batch(2), renamed)).rejects.toThrow(/batch 2 has column "thing"/);
  await expect(read(batch(1), more)).rejects.toThrow(/batch 1 has 2 columns, the schema 1/);
  await expect(read(batch(1), 'rows' as unknown as RecordBatch)).rejects.toThrow(
    /batch 1 of the source is not a RecordBatch/,
  );
});

test('no batch and no schema is an error; with a schema it is an empty stream', async () => {
  await expect(iterableSource([]).schema()).rejects.toThrow(/gave no batch/);
  expect(await collect(await iterableSource([], batch(1).schema).execute(context()))).toEqual([]);
});

test("an iterator's own error comes through", async () => {
  async function* failing() {
    yield batch(1);
    throw new Error('the socket closed');
  }
  await expect(iterableSource(failing()).execute(context()).then(collect)).rejects.toThrow(
    'the socket closed',
  );
});

test('a value that is not a source of batches is refused by name', async () => {
  for (const nothing of [5, null, undefined, {}]) {
    await expect(iterableSource(nothing as never).schema()).rejects.toThrow(
      `the source is not an iterable of record batches: ${shown(nothing)}`,
    );
  }
  for (const [other, advice] of [
    [{ schema: 1 }, 'session.fromRows takes plain objects'],
    [null, 'session.fromRows takes plain objects'],
    [new Table({ item: makeVector(Int32Array.of(1)) }), 'table.batches'],
    [{ schema: batch(1).schema, numRows: 1 }, 'Import from factorflow/arrow'],
  ] as const) {
    await expect(iterableSource([other as never]).schema()).rejects.toThrow(
      new RegExp(`batch 0 of the source is not a RecordBatch.*${advice}`),
    );
  }
});

test('batches without rows are passed over, also those that lack their memory', async () => {
  const empty = new Table({ item: makeVector(new Int32Array(0)) }).batches[0];
  const batches = await collect(await iterableSource([empty, batch(1), empty, batch(2)]).execute(context()));
  expect(arrowRows(batches)).toEqual([[1], [2]]);
  expect(batches.map((one) => originOf(one)?.firstRow)).toEqual([0, 1]);
});
