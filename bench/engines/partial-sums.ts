import { Field, Float64, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';

/** The single column of the batches that `sumOf` returns. */
export const sums = new Schema([new Field('sum', new Float64(), false)]);

/**
 * The sum of one column of a batch, as a batch of one row: the kind of function that a user writes for
 * `mapBatches`.
 */
export function sumOf(batch: RecordBatch, { column }: { readonly column: string }): RecordBatch {
  let sum = 0;
  for (const { values } of batch.getChild(column)?.data ?? [])
    for (let row = 0; row < values.length; row++) sum += values[row];
  const data = makeData({ type: new Float64(), data: Float64Array.of(sum) });
  const type = new Struct<{ sum: Float64 }>(sums.fields);
  return new RecordBatch(sums, makeData({ type, length: 1, nullCount: 0, children: [data] }));
}
