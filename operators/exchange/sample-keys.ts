import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { sampleKeys, sampleSchema } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { RowOperator } from '../dataflow/row-operator.ts';

/** Yields the sort keys of every `every`th row of a task, with the rows' positions. */
export class SampleKeys extends RowOperator {
  readonly name = 'sample-keys';
  readonly #keys: readonly SortKey[];
  readonly #task: number;
  readonly #every: number;

  constructor(keys: readonly SortKey[], task: number, every: number) {
    super([keys, task, every]);
    [this.#keys, this.#task, this.#every] = [keys, task, every];
  }

  describe(): JsonObject {
    return { keys: this.#keys.map(({ column }) => column) };
  }

  override outputSchema(input: Schema): Schema {
    return sampleSchema(input, this.#keys);
  }

  override requiredColumns(): readonly string[] {
    return this.#keys.map(({ column }) => column);
  }

  protected async *batches(input: BatchStream): AsyncGenerator<RecordBatch> {
    const [task, every] = [this.#task, this.#every];
    let firstRow = 0;
    for await (const batch of input) {
      const sample = sampleKeys(batch, this.#keys, { task, firstRow, every });
      if (sample.numRows > 0) yield sample;
      firstRow += batch.numRows;
    }
  }
}
