import { Int32, type RecordBatch, Table, TimestampMicrosecond, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import type { ProgressEvent } from '../../../engine/events.ts';
import { iterableSource } from '../../../connectors/iterable-source.ts';
import { LocalExecutor } from '../../../engine/run/local-executor.ts';
import { andThen, executePlan, fromSource } from '../../../engine/stream/logical-plan.ts';
import { RunMetrics } from '../../../engine/metrics.ts';
import { setOrigin } from '../../../engine/stream/stream.ts';
import { type RatingColumns, SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { batchOf, ratingBatch } from '../../support/ratings.ts';

async function select(batches: RecordBatch[], columns: RatingColumns, policy: 'error' | 'skip' = 'error') {
  const events: ProgressEvent[] = [];
  const ctx = {
    signal: new AbortController().signal,
    executor: new LocalExecutor([]),
    events: (e: ProgressEvent) => void events.push(e),
    metrics: new RunMetrics(),
  };
  const rows: unknown[] = [];
  for await (const batch of await executePlan(
    andThen(fromSource(iterableSource(batches)), new SelectRatings(columns, policy)),
    ctx,
  )) {
    for (const row of batch.toArray()) rows.push(Object.values(row.toJSON()));
  }
  return { rows, events };
}

const columns = { user: 'u', item: 'i', rating: 'r' };

describe('select-ratings', () => {
  it('renames and converts columns, and drops the others', async () => {
    const batch = batchOf({
      extra: { type: 'utf8', values: ['x', 'y'] },
      u: { type: 'int64', values: [5n, 2n ** 40n] },
      i: { type: 'utf8', values: ['a', 'b'] },
      r: { type: 'float64', values: [1.5, 2] },
    });
    expect((await select([batch], columns)).rows).toEqual([
      [5n, 'a', 1.5],
      [2n ** 40n, 'b', 2],
    ]);
  });

  it('passes clean float32 ratings without a copy', async () => {
    const batch = ratingBatch([{ user: 1, item: 2, rating: 3 }]);
    const ctx = {
      signal: new AbortController().signal,
      executor: new LocalExecutor([]),
      events: () => {},
      metrics: new RunMetrics(),
    };
    const stream = new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }).execute(
      {
        schema: batch.schema,
        async *[Symbol.asyncIterator]() {
          yield batch;
        },
      },
      ctx,
    );
    for await (const out of stream)
      expect(out.data.children[2].values.buffer).toBe(batch.data.children[2].values.buffer);
  });

  it('counts bad rows and names the first with its file, row group, row and value', async () => {
    const good = ratingBatch([{ user: 1, item: 2, rating: 3 }]);
    const bad = setOrigin(
      ratingBatch([
        { user: 1, item: 2, rating: 3 },
        { user: 1, item: 3, rating: Number.NaN },
        { user: 2, item: 3, rating: Number.POSITIVE_INFINITY },
      ]),
      { file: 'a.parquet', rowGroup: 4, firstRow: 100 },
    );
    await expect(select([good, bad], { user: 'user', item: 'item', rating: 'rating' })).rejects.toThrow(
      /2 bad rows, the first in a\.parquet, row group 4, row 102: rating is NaN.*onBadRows: 'skip'/,
    );
  });

  it.each([
    ['a null rating', { r: [null, 1] }, 'r is null'],
    ['a null user', { u: [null, 7] }, 'u is null'],
    ['a null item', { i: [null, 7] }, 'i is null'],
  ])('refuses %s', async (_, change, message) => {
    const values = { u: [1, 2], i: [1, 2], r: [1, 2], ...change };
    const batch = batchOf({
      u: { type: 'int32', values: values.u },
      i: { type: 'int32', values: values.i },
      r: { type: 'float32', values: values.r },
    });
    await expect(select([batch], columns)).rejects.toThrow(
      `1 bad row, the first in the stream, row 1: ${message}`,
    );
  });

  it('leaves bad rows out when asked, and reports their number', async () => {
    const batch = batchOf({
      u: { type: 'utf8', values: ['a', 'b', null, 'd'] },
      i: { type: 'int32', values: [1, 2, 3, 4] },
      r: { type: 'float64', values: [1, Number.NaN, 3, 4] },
    });
    const { rows, events } = await select([batch], columns, 'skip');
    expect(rows).toEqual([
      ['a', 1, 1],
      ['d', 4, 4],
    ]);
    expect(events).toEqual([
      { type: 'warning', text: 'left out 2 bad rows, the first in the stream, row 2: r is NaN' },
    ]);
  });

  it('counts a rating that float32 cannot hold as bad', async () => {
    const batch = batchOf({
      u: { type: 'int32', values: [1] },
      i: { type: 'int32', values: [1] },
      r: { type: 'float64', values: [1e300] },
    });
    await expect(select([batch], columns)).rejects.toThrow('r is 1e+300, beyond float32');
  });

  it('takes no times for ratings', async () => {
    const times = new Table({
      u: vectorFromArray([1], new Int32()),
      i: vectorFromArray([1], new Int32()),
      r: vectorFromArray([new Date(0)]),
    }).batches[0];
    await expect(select([times], columns)).rejects.toThrow(
      /the column must hold numbers, but its type is (Timestamp|Date)/,
    );
    const stamps = new Table({
      u: vectorFromArray([1], new Int32()),
      i: vectorFromArray([1], new Int32()),
      r: vectorFromArray([0], new TimestampMicrosecond()),
    }).batches[0];
    await expect(select([stamps], columns)).rejects.toThrow(
      'the column must hold numbers, but its type is Timestamp<MICROSECOND>',
    );
  });

  it('names the existing columns when one is missing, and the type of an unusable one', async () => {
    const batch = batchOf({
      u: { type: 'int32', values: [1] },
      i: { type: 'float64', values: [1.5] },
      r: { type: 'utf8', values: ['x'] },
    });
    await expect(select([batch], { ...columns, user: 'missing' })).rejects.toThrow(
      'there is no column "missing"; there are: u (Int32), i (Float64), r (Utf8)',
    );
    const dates = new Table({
      u: vectorFromArray([new Date(0)], new TimestampMicrosecond()),
      i: vectorFromArray([1], new Int32()),
      r: vectorFromArray([1], new Int32()),
    }).batches[0];
    await expect(select([dates], columns)).rejects.toThrow(
      /ids must be whole numbers, text, dates or UUIDs, but the type is Timestamp.* \(column "u"\)/,
    );
    await expect(select([batch], { user: 'u', item: 'u', rating: 'r' })).rejects.toThrow('must differ');
    const text = batchOf({
      u: { type: 'int32', values: [1] },
      i: { type: 'int32', values: [1] },
      r: { type: 'utf8', values: ['x'] },
    });
    await expect(select([text], columns)).rejects.toThrow('r "x" is not a number');
  });
});
