import type { RecordBatch } from 'apache-arrow';
import type { Dataset } from '../../api/dataset.ts';
import { batchStream, type BatchStream, type Operator } from '../../index.ts';

/** Passes every batch to `see`, and returns the rows unchanged. */
function watched(rows: Dataset, see: (batch: RecordBatch) => void): Dataset {
  async function* passing(input: BatchStream) {
    for await (const batch of input) {
      see(batch);
      yield batch;
    }
  }
  const watch: Operator = {
    name: 'watch',
    describe: () => ({}),
    outputSchema: (input) => input,
    requiredColumns: (wanted) => wanted,
    execute: (input) => batchStream(input.schema, passing(input)),
  };
  return rows.pipe(watch);
}

/** Counts pairs without a prediction while they are predicted: pairs with NaN, and pairs left out. */
export function countColdPairs(
  pairs: Dataset,
  predict: (pairs: Dataset) => Dataset,
  column: string,
): { readonly predictions: Dataset; counts(): { readonly unknown: number; readonly leftOut: number } } {
  let [read, written, unknown] = [0, 0, 0];
  const predictions = watched(predict(watched(pairs, (batch) => void (read += batch.numRows))), (batch) => {
    written += batch.numRows;
    for (const value of (batch.getChild(column)?.toArray() ?? []) as Float32Array)
      if (Number.isNaN(value)) unknown++;
  });
  return { predictions, counts: () => ({ unknown, leftOut: read - written }) };
}
