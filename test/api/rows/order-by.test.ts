/**
 * Sorted rows of a data set: all forms of keys, from one stream and from splits, with any number of threads.
 */
import { List, vectorFromArray } from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import type { OrderKey } from '../../../api/order-keys.ts';
import { col, count, type Dataset, functions } from '../../../index.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { batchOf } from '../../engine/expressions/evaluated.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const folder = temporaryFolder();
const ROWS = 12_000;
const open = (workers: number) => cpuSession({ workers, splitBytes: 20_000 });

beforeAll(async () => {
  const line = (i: number) => `${i},${(i * 7919) % 997},${i % 5 === 0 ? '' : `word ${i % 31}`}\n`;
  const lines = Array.from({ length: ROWS }, (_, i) => line(i));
  writeFileSync(join(folder, 'rows.csv'), `row,user,word\n${lines.join('')}`);
  const session = await open(1);
  const rows = session.read.csv(join(folder, 'rows.csv'));
  await rows.write.parquet(join(folder, 'rows.parquet'), { rowGroupSize: 1000 });
});

interface Row {
  readonly row: number;
  readonly user: number;
  readonly word: string | null;
}

const expected = Array.from({ length: ROWS }, (_, row): Row => ({
  row,
  user: (row * 7919) % 997,
  word: row % 5 === 0 ? null : `word ${row % 31}`,
}));

async function rowsOf(rows: Dataset): Promise<number[]> {
  const found: number[] = [];
  for await (const batch of rows) found.push(...Array.from(batch.getChild('row') ?? [], Number));
  return found;
}

const byUser = expected.toSorted((a, b) => a.user - b.user).map(({ row }) => row);
const word = ({ word: own }: Row) => own ?? '';
const byWord = expected
  .toSorted((a, b) => (word(b) < word(a) ? -1 : word(b) > word(a) ? 1 : b.user - a.user))
  .map(({ row }) => row);

it('sorts the few rows that a filter leaves, of which no sample may have any', async () => {
  const session = await open(2);
  const rows = session.read.parquet(join(folder, 'rows.parquet'));
  for (let i = 0; i < 5; i++) {
    const row = (i * 19_997) % ROWS;
    const few = rows.filter(
      col('row')
        .mod(ROWS / 2)
        .eq(row % (ROWS / 2)),
    );
    expect(await rowsOf(few.orderBy('user', 'row')), `row ${row}`).toHaveLength(2);
  }
});

it.each([
  ['rows.csv', 1],
  ['rows.parquet', 3],
] as const)('sorts %s by %i threads, all of it and the first rows', async (name, workers) => {
  const session = await open(workers);
  const rows = await session.read.any(join(folder, name));
  expect(await rowsOf(rows.orderBy('user'))).toEqual(byUser);
  expect(await rowsOf(rows.orderBy(col('word').desc(), col('user').desc()))).toEqual(byWord);
  for (const first of [0, 1, 100, 7000]) {
    expect(await rowsOf(rows.orderBy('user').limit(first))).toEqual(byUser.slice(0, first));
    // Columns of numbers only: these batches are in memory that the next rows may overwrite.
    const numbers = rows.select('row', 'user').orderBy('user').limit(first);
    expect(await rowsOf(numbers), `${first} rows of numbers`).toEqual(byUser.slice(0, first));
    const top = rows.orderBy(col('word').desc(), col('user').desc()).limit(first);
    expect(await rowsOf(top), `${first} rows`).toEqual(byWord.slice(0, first));
  }
});

it('takes keys as names, columns, directions and objects, places nulls, and drops computed keys', async () => {
  const session = await open(1);
  const x = [2, null, Number.NaN, -1, 2];
  const data = session.from([
    batchOf({
      row: vectorFromArray(Int32Array.of(0, 1, 2, 3, 4)).data[0],
      x: vectorFromArray(x).data[0],
    }),
  ]);
  const cases: readonly (readonly [OrderKey[], number[]])[] = [
    [['x'], [1, 3, 0, 4, 2]],
    [[col('x')], [1, 3, 0, 4, 2]],
    [[col('x').asc().nullsLast()], [3, 0, 4, 2, 1]],
    [[col('x').desc()], [2, 0, 4, 3, 1]],
    [[col('x').desc().nullsFirst()], [1, 2, 0, 4, 3]],
    [[{ column: 'x', descending: true, nulls: 'first' }], [1, 2, 0, 4, 3]],
    [
      ['x', { column: 'row', descending: true }],
      [1, 3, 4, 0, 2],
    ],
    [
      [functions.abs(col('x')), col('row').negate().asc()],
      [1, 3, 4, 0, 2],
    ],
  ];
  for (const [keys, order] of cases) {
    const sorted = data.orderBy(...keys);
    expect(await rowsOf(sorted)).toEqual(order);
    expect(await rowsOf(data.sort(...keys).limit(3))).toEqual(order.slice(0, 3));
    expect((await sorted.schema()).fields.map(({ name }) => name)).toEqual(['row', 'x']);
    expect(await sorted.count()).toBe(5);
  }
});

it('refuses no keys, unknown columns, types without an order, and what is no key', async () => {
  const session = await open(1);
  const list = vectorFromArray(
    [[1]],
    new List(batchOf({ x: vectorFromArray([1]).data[0] }).schema.fields[0]),
  );
  const rows = session.from([batchOf({ user: vectorFromArray([1]).data[0], list: list.data[0] })]);
  expect(() => rows.orderBy()).toThrow("sorting takes one key or more. Name a column: orderBy('user')");
  await expect(rows.orderBy('usr').collect()).rejects.toThrow(
    'there is no column "usr" to sort by. Did you mean user? The columns are: user, list',
  );
  await expect(rows.orderBy('usr').limit(3).collect()).rejects.toThrow('there is no column "usr" to sort by');
  await expect(rows.orderBy('list').collect()).rejects.toThrow(
    'the rows cannot be sorted by the column "list" of type List<Float64>',
  );
  expect(() => rows.orderBy(3 as unknown as string)).toThrow('orderBy takes names and columns, got 3');
  const wrong = (key: object) => () => rows.orderBy(key as { column: string });
  expect(wrong({ column: 'x', desc: true })).toThrow('unknown option desc of a key of orderBy');
  expect(wrong({ column: 3 })).toThrow('the column of a key of orderBy must be a name, got 3');
  expect(wrong({ column: 'x', nulls: 'middle' })).toThrow('must be first or last, got "middle"');
  expect(wrong({ column: 'x', descending: 1 })).toThrow('must be true or false, got 1');
});

it('needs no more columns than come before it, where a filter before it has left some out', async () => {
  const session = await open(2);
  const few = session.read
    .csv(join(folder, 'rows.csv'))
    .filter(col('word').isNotNull())
    .orderBy('user')
    .select('row', 'user');
  const counts = few.groupBy('user').agg(count().as('rows'));
  expect(await few.join(counts, 'user').count()).toBe(ROWS - ROWS / 5);
});
