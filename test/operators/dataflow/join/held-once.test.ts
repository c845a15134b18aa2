/** The tasks of a thread that join with the same rows make their table once. */
import { Int32, type RecordBatch, Table, vectorFromArray } from 'apache-arrow';
import { expect, it } from 'vitest';
import { JoinRows } from '../../../../operators/dataflow/join/join-rows.ts';
import { context, streamOf } from '../../../connectors/parquet/parquet-testing.ts';

const batchOf = (columns: Readonly<Record<string, number[]>>): RecordBatch =>
  new Table(
    Object.fromEntries(
      Object.entries(columns).map(([name, values]) => [name, vectorFromArray(values, new Int32())]),
    ),
  ).batches[0];

const left = batchOf({ k: [1, 2, 2], x: [10, 20, 40] });
const right = batchOf({ k: [2, 2, 5], y: [7, 8, 9] });

it('reads a held side with the same name once, as long as it is held', async () => {
  let reads = 0;
  const held = (identity: string) => ({
    schema: right.schema,
    identity,
    async *[Symbol.asyncIterator]() {
      reads++;
      yield right;
    },
  });
  for (const kind of ['inner', 'semi'] as const) {
    reads = 0;
    const params = { kind, build: 'right', keys: { left: ['k'], right: ['k'] } } as const;
    const stream = (name: string) => {
      const rows = streamOf(left.schema, [left, left]);
      const operator = new JoinRows({ ...params, keeps: ['x'] });
      return operator.execute(rows, held(`${kind} ${name}`), context() as never)[Symbol.asyncIterator]();
    };
    // The first stream is not at its end: its held side is not collected.
    const first = stream('a');
    const [one] = [(await first.next()).value as RecordBatch];
    const again = stream('a');
    expect(((await again.next()).value as RecordBatch).toArray()).toEqual(one.toArray());
    expect(reads).toBe(1);
    await stream('b').next();
    expect(reads).toBe(2);
    expect(((await first.next()).value as RecordBatch).numRows).toBe(one.numRows);
  }
});
