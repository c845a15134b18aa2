import { Field, Int32, makeData, type RecordBatch, RecordBatch as Batch, Schema, Struct } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { Aggregate } from '../../../../operators/dataflow/aggregate/aggregate.ts';
import { testRandom } from '../../../support/ratings.ts';
import { named, objectsOf, type Rows, run, whole } from './aggregating.ts';

describe('a partial step', () => {
  const inTurn = (row: number, distinct: number) => row % distinct;
  const random = testRandom(3);
  const drawn = (_row: number, distinct: number) => Math.floor(random() * distinct);
  function pairs(rows: number, distinct: number, keyOf = inTurn): Rows {
    const schema = new Schema(['k', 'x'].map((name) => new Field(name, new Int32(), true)));
    const batches: RecordBatch[] = [];
    for (let from = 0; from < rows; from += 10_000) {
      const keys = Int32Array.from({ length: 10_000 }, (_, i) => keyOf(from + i, distinct));
      const children = [keys, keys.map((key) => key % 3)].map((data) =>
        makeData({ type: new Int32(), data }),
      );
      batches.push(
        new Batch(
          schema,
          makeData({ type: new Struct(schema.fields), length: 10_000, nullCount: 0, children }),
        ),
      );
    }
    return { schema, batches };
  }
  const aggregations = [
    named('n', 'count'),
    named('d', 'countDistinct', 'x'),
    named('l', 'collectList', 'x'),
    named('v', 'stddev', 'x'),
  ];
  const partialRows = async (rows: Rows) => {
    const { batches } = await run(new Aggregate({ keys: ['k'], aggregations, step: 'partial' }), rows);
    return batches.reduce((sum, { numRows }) => sum + numRows, 0);
  };

  it('merges rows as long as that leaves out many of them', async () => {
    expect(await partialRows(pairs(200_000, 1000))).toBe(1000);
    expect(await partialRows(pairs(200_000, 10_000))).toBe(10_000);
    expect(await partialRows(pairs(200_000, 40_000, drawn))).toBeLessThan(40_001);
  });

  it('gives each row after the first ones as a group where it leaves out few, with the same result', async () => {
    const rows = pairs(200_000, 150_000);
    expect(await partialRows(rows)).toBe(200_000);
    const partial = new Aggregate({ keys: ['k'], aggregations, step: 'partial' });
    const states = await run(partial, rows);
    const found = await run(new Aggregate({ keys: ['k'], aggregations, step: 'final' }), states);
    expect(objectsOf(found)).toEqual(objectsOf(await whole(rows, ['k'], aggregations)));
  });

  it('gives batches of at most 65,536 rows', async () => {
    const { batches } = await whole(pairs(200_000, 150_000), ['k'], [named('n', 'count')]);
    expect(batches.map(({ numRows }) => numRows)).toEqual([60_000, 60_000, 30_000]);
  });
});

it('describes itself, and needs the columns of keys and values', () => {
  const aggregate = new Aggregate({
    keys: ['item'],
    aggregations: [named('n', 'count'), named('mean', 'mean', 'rating + 1')],
    step: 'partial',
  });
  expect(aggregate.describe()).toEqual({
    step: 'partial',
    keys: ['item'],
    aggregates: ['count(*) as n', 'mean(rating + 1) as mean'],
  });
  expect(aggregate.requiredColumns()).toEqual(['item', 'rating']);
});
