import { Field, Int32, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../../../engine/errors.ts';
import { DistinctRows, type DistinctRowsOptions } from '../../../operators/dataflow/distinct-rows.ts';
import { duckdb, duckRows } from '../../connectors/parquet/parquet-testing.ts';
import { batchOfCells, drawCells, duckTable, randomColumns } from '../../engine/expressions/random-rows.ts';
import { column } from '../../engine/expressions/evaluated.ts';
import { cellsByRow, cutRows, nullable, type Rows, run } from './aggregate/aggregating.ts';
import { sampleSize } from '../../support/deep.ts';
import { drawnNumbers } from '../../support/drawn-numbers.ts';

const random = drawnNumbers();

const distinct = (rows: Rows, options: DistinctRowsOptions) => run(new DistinctRows(options), rows);

const schema = new Schema(['k', 'row'].map((name) => new Field(name, new Int32(), true)));
function ofKeys(keys: readonly number[], from = 0): RecordBatch {
  const children = [
    column('int32', keys),
    column(
      'int32',
      keys.map((_, i) => from + i),
    ),
  ];
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: keys.length, nullCount: 0, children }),
  );
}
const values = ({ batches }: Rows, at: number) =>
  batches.flatMap(({ data }) => [...(data.children[at].values as Int32Array)]);

describe('distinct rows', () => {
  it('are the first of each combination of keys, in their order', async () => {
    const rows = { schema, batches: [ofKeys([3, 1, 3]), ofKeys([1, 1], 3), ofKeys([2, 3, 4], 5)] };
    const found = await distinct(rows, { keys: ['k'], step: 'whole' });
    expect(values(found, 0)).toEqual([3, 1, 2, 4]);
    expect(values(found, 1)).toEqual([0, 1, 5, 7]);
    expect(found.batches).toHaveLength(2);
  });

  it('by random keys are DuckDB’s, also from parts', async () => {
    const columns = randomColumns(random);
    const names = Object.keys(columns);
    const connection = await duckdb();
    for (let table = 0; table < sampleSize(20); table++) {
      const cells = drawCells(columns, 60, () => random() < 0.2);
      for (const statement of duckTable('doubled', columns, cells, 'row number'))
        await connection.run(statement);
      const keys = Array.from({ length: 1 + (table % 3) }, () => names[Math.floor(random() * names.length)]);
      const own = [...new Set(keys)];
      const list = own.map((name) => `"${name}"`).join(', ');
      const first = await duckRows(
        `SELECT min("row number") AS first FROM doubled GROUP BY ${list} ORDER BY first`,
      );
      const numbered = { ...columns, row: columns.i };
      const batch = nullable(batchOfCells(numbered, { ...cells, row: cells.i.map((_, row) => row) }));
      const rows = { schema: batch.schema, batches: cutRows(batch, random) };
      const partial = await Promise.all(
        rows.batches.map((one) => distinct({ ...rows, batches: [one] }, { keys: own, step: 'partial' })),
      );
      const ways = [rows, { ...rows, batches: partial.flatMap(({ batches }) => batches) }];
      for (const way of ways) {
        const found = await distinct(way, { keys: own, step: 'whole' });
        expect(
          cellsByRow(
            found,
            batch.schema.fields.map(() => 'text'),
          ).map((row) => BigInt(row.at(-1) as number)),
          list,
        ).toEqual(first.map(([row]) => row));
      }
    }
  });

  it('let the rest pass in a partial step that leaves out few rows', async () => {
    const keys = (from: number) => Array.from({ length: 10_000 }, (_, i) => from + i);
    const batches = Array.from({ length: 8 }, (_, i) => ofKeys(keys(10_000 * i)));
    const rows = { schema, batches: [...batches, batches[0]] };
    const passed = await distinct(rows, { keys: ['k'], step: 'partial' });
    expect(passed.batches.at(-1)).toBe(batches[0]);
    expect(values(await distinct(rows, { keys: ['k'], step: 'whole' }), 0)).toHaveLength(80_000);
    const few = { schema, batches: Array.from({ length: 9 }, () => batches[0]) };
    expect(values(await distinct(few, { step: 'partial' }), 0)).toHaveLength(10_000);
  });

  it('need the columns of their keys, of which all must exist', async () => {
    const operator = new DistinctRows({ keys: ['k'], step: 'whole' });
    expect(operator.requiredColumns(['row'])).toEqual(['row', 'k']);
    expect(new DistinctRows({ step: 'whole' }).requiredColumns(['row'])).toBeUndefined();
    const missing = new DistinctRows({ keys: ['key'], step: 'whole' });
    expect(() => missing.outputSchema(schema)).toThrow(UsageError);
    expect(() => missing.outputSchema(schema)).toThrow(
      'there is no column "key" by which rows would be distinct',
    );
  });
});
