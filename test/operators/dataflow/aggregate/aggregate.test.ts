import {
  type Data,
  DateMillisecond,
  Decimal,
  makeData,
  TimestampNanosecond,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { DataError } from '../../../../engine/errors.ts';
import type { AggregateName, Aggregation } from '../../../../operators/dataflow/aggregate/aggregate.ts';
import { batchOf, type Cell, column } from '../../../engine/expressions/evaluated.ts';
import { cutRows, inParts, named, nullable, objectsOf, type Rows, rowsOf, whole } from './aggregating.ts';
import { drawnNumbers } from '../../../support/drawn-numbers.ts';

const random = drawnNumbers();

/** The rows of one step, in several parts. */
async function aggregated(
  rows: Rows,
  keys: readonly string[],
  aggregations: readonly Aggregation[],
): Promise<Record<string, unknown>[]> {
  const found = objectsOf(await whole(rows, keys, aggregations));
  const cut = { ...rows, batches: rows.batches.flatMap((batch) => cutRows(batch, random)) };
  expect(objectsOf(await inParts(cut, { keys, aggregations }, random))).toEqual(found);
  return found;
}

/** The results of some aggregates of one column, in one group. */
async function ofValues(data: Data, ...calls: readonly AggregateName[]): Promise<Record<string, unknown>> {
  const aggregations = calls.map((call) => named(call, call, 'x'));
  const [row] = await aggregated(rowsOf({ x: data }), [], aggregations);
  return row;
}

describe('aggregates', () => {
  it('of groups, in the order in which these begin', async () => {
    const rows = rowsOf({
      k: column('utf8', ['b', 'a', 'b', null, 'a', 'b']),
      x: column('int32', [1, 2, 3, 4, null, 6]),
    });
    const found = await aggregated(
      rows,
      ['k'],
      [
        named('n', 'count'),
        named('present', 'count', 'x'),
        named('total', 'sum', 'x'),
        named('mean', 'mean', 'x * 2'),
        named('list', 'collectList', 'x'),
        named('last', 'last', 'x'),
      ],
    );
    expect(found).toEqual([
      { k: 'b', n: 3n, present: 3n, total: 10n, mean: 20 / 3, list: [1, 3, 6], last: 6 },
      { k: 'a', n: 2n, present: 1n, total: 2n, mean: 4, list: [2], last: null },
      { k: null, n: 1n, present: 1n, total: 4n, mean: 8, list: [4], last: 4 },
    ]);
  });

  it('of no rows are one row without keys, and none with them', async () => {
    const { schema } = rowsOf({ x: column('int32', []) });
    const calls = [
      'count',
      'countDistinct',
      'sum',
      'mean',
      'min',
      'max',
      'stddev',
      'first',
      'last',
      'collectList',
    ] as const;
    const aggregations = calls.map((call) => named(call, call, 'x'));
    const expected = {
      count: 0n,
      countDistinct: 0n,
      sum: null,
      mean: null,
      min: null,
      max: null,
      stddev: null,
      first: null,
      last: null,
      collectList: [],
    };
    for (const empty of [{ schema, batches: [] }, rowsOf({ x: column('int32', []) })]) {
      expect(objectsOf(await whole(empty, [], aggregations))).toEqual([expected]);
      expect(objectsOf(await inParts(empty, { keys: [], aggregations }, random))).toEqual([expected]);
      expect(await aggregated(empty, ['x'], [named('n', 'count')])).toEqual([]);
    }
  });

  it('of nulls alone', async () => {
    const nulls = column('float64', [null, null]);
    expect(await ofValues(nulls, 'count', 'sum', 'mean', 'min', 'stddev', 'first', 'collectList')).toEqual({
      count: 0n,
      sum: null,
      mean: null,
      min: null,
      stddev: null,
      first: null,
      collectList: [],
    });
    expect(
      await ofValues(column('null', [null, null]), 'count', 'countDistinct', 'sum', 'min', 'last'),
    ).toEqual({
      count: 0n,
      countDistinct: 0n,
      sum: null,
      min: null,
      last: null,
    });
  });

  it('of constants and of conditions', async () => {
    const rows = rowsOf({ x: column('int32', [1, 5, 9]) });
    const found = await aggregated(
      rows,
      [],
      [
        named('two', 'sum', '2'),
        named('one', 'countDistinct', "'a'"),
        named('large', 'max', 'x > 4'),
        named('text', 'min', "'b'"),
      ],
    );
    expect(found).toEqual([{ two: 6n, one: 1n, large: true, text: 'b' }]);
  });
});

describe('sums of integers', () => {
  const [most, least] = [2n ** 63n - 1n, -(2n ** 63n)];
  it.each<[string, 'int64' | 'uint64' | 'int32', Cell[], bigint]>([
    ['beyond 2^53', 'int64', [2n ** 53n + 1n, 1n, 3n], 2n ** 53n + 5n],
    ['that leave int64 on the way', 'int64', [most, most, least, least, 7n], 5n],
    ['at the ends', 'int64', [least + 5n, -5n], least],
    [
      'of safe integers',
      'int64',
      Array.from({ length: 1500 }, () => 2n ** 52n + 1n),
      1500n * (2n ** 52n + 1n),
    ],
    [
      'of negative safe integers',
      'int64',
      Array.from({ length: 9 }, () => -(2n ** 53n) + 1n),
      9n * (1n - 2n ** 53n),
    ],
    ['without a sign', 'uint64', [2n ** 63n - 9n, 8n], 2n ** 63n - 1n],
    ['of 32 bits', 'int32', [2 ** 31 - 1, 2 ** 31 - 1, -(2 ** 31)], 2n ** 31n - 2n],
  ])('are exact %s', async (_, type, cells, total) => {
    const { sum, mean } = await ofValues(column(type, cells), 'sum', 'mean');
    expect(sum).toBe(total);
    expect(mean).toBe(Number(total) / cells.length);
  });

  it('are refused beyond int64, with the sum', async () => {
    const rows = rowsOf({ x: column('int64', [most, 1n]) });
    const error = new DataError(`sum(x) is beyond int64: ${most + 1n}`, {
      advice: 'Sum floats: cast the column to float64',
    });
    await expect(whole(rows, [], [named('s', 'sum', 'x')])).rejects.toThrow(error);
    const negative = rowsOf({ x: column('int64', [least, -1n]) });
    await expect(whole(negative, [], [named('s', 'sum', 'x')])).rejects.toThrow(`${least - 1n}`);
  });

  it('keep what their types have: floats stay floats', async () => {
    const { schema } = await whole(rowsOf({ x: column('float32', [0.5]) }), [], [named('s', 'sum', 'x')]);
    expect(String(schema.fields[0].type)).toBe('Float64');
    expect(await ofValues(column('float32', [0.5, 0.25, Number.NaN]), 'sum')).toEqual({ sum: Number.NaN });
  });
});

describe('the least and the largest', () => {
  it('have NaN as the largest number, and no order between zeros', async () => {
    const cells = [Number.NaN, 3, -Infinity, null];
    expect(await ofValues(column('float64', cells), 'min', 'max')).toEqual({
      min: -Infinity,
      max: Number.NaN,
    });
    expect(await ofValues(column('float64', [Number.NaN, null]), 'min')).toEqual({ min: Number.NaN });
  });

  it('of 64 bits, with and without a sign', async () => {
    const wide = [5n, -(2n ** 63n), 2n ** 63n - 1n, null, 2n ** 32n, 2n ** 32n + 1n];
    expect(await ofValues(column('int64', wide), 'min', 'max')).toEqual({ min: wide[1], max: wide[2] });
    const huge = [5n, 2n ** 64n - 1n, 2n ** 63n];
    expect(await ofValues(column('uint64', huge), 'min', 'max')).toEqual({ min: 5n, max: huge[1] });
  });

  it('keep types that expressions do not have: nanoseconds, decimals, dates of milliseconds', async () => {
    const nanoseconds = makeData({
      type: new TimestampNanosecond(),
      data: BigInt64Array.of(2n ** 60n + 1n, 2n ** 60n, 2n ** 61n + 7n),
    });
    const rows = rowsOf({ x: nanoseconds });
    const result = await whole(rows, [], [named('min', 'min', 'x'), named('max', 'max', 'x')]);
    expect(result.schema.fields.map(({ type }) => String(type))).toEqual(
      Array.from({ length: 2 }, () => String(nanoseconds.type)),
    );
    expect(result.batches[0].data.children.map(({ values }) => (values as BigInt64Array)[0])).toEqual([
      2n ** 60n,
      2n ** 61n + 7n,
    ]);
    const decimal = makeData({ type: new Decimal(2, 10, 128), data: Uint32Array.of(7, 0, 0, 0, 5, 0, 0, 0) });
    const least = await whole(rowsOf({ x: decimal }), [], [named('min', 'min', 'x')]);
    expect([...(least.batches[0].data.children[0].values as Uint32Array)]).toEqual([5, 0, 0, 0]);
    const days = vectorFromArray([new Date(86_400_000), new Date(0)], new DateMillisecond()).data[0];
    expect(Number((await ofValues(days, 'max')).max)).toBe(86_400_000);
  });

  it('of many texts by group, the same ones many times', async () => {
    const rows = 40_000;
    const words = Array.from({ length: rows }, () => `word number ${Math.floor(random() * 9000)}`);
    const keys = words.map((_, i) => i % 7);
    const batch = nullable(batchOf({ k: column('int32', keys), x: column('utf8', words) }));
    const batches = Array.from({ length: 40 }, (_, i) => batch.slice(1000 * i, 1000 * (i + 1)));
    const found = objectsOf(
      await whole(
        { schema: batch.schema, batches },
        ['k'],
        [named('min', 'min', 'x'), named('max', 'max', 'x'), named('last', 'last', 'x')],
      ),
    );
    for (const { k, min, max, last } of found) {
      const own = words.filter((_, i) => i % 7 === k);
      expect([min, max, last]).toEqual([own.toSorted()[0], own.toSorted().at(-1), own.at(-1)]);
    }
  });
});
