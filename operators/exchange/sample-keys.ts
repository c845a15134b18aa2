import type { RecordBatch, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { sampleKeys, sampleSchema } from '../../engine/sorting/range-parts.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';

/** One of so many rows is in a sample. */
const EVERY = 32;

/** Most rows of a task of which a sample is taken. */
const MOST_ROWS = 1 << 16;

/** The keys of some of the first rows of a task, with their positions. */
export class SampleKeys implements Operator {
  readonly name = 'sample-keys';
  readonly #keys: readonly SortKey[];
  readonly #task: number;

  constructor(keys: readonly SortKey[], task: number) {
    [this.#keys, this.#task] = [keys, task];
  }

  static from({ keys, task }: ReturnType<SampleKeys['portable']>): SampleKeys {
    return new SampleKeys(keys, task);
  }

  describe(): JsonObject {
    return { keys: this.#keys.map(({ column }) => column) };
  }

  portable() {
    return { operator: this.name, keys: this.#keys.map((key) => ({ ...key })), task: this.#task } as const;
  }

  outputSchema(input: Schema): Schema {
    return sampleSchema(input, this.#keys);
  }

  requiredColumns(): readonly string[] {
    return this.#keys.map(({ column }) => column);
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(this.outputSchema(input.schema), this.#sample(input));
  }

  async *#sample(input: BatchStream): AsyncGenerator<RecordBatch> {
    let firstRow = 0;
    for await (const batch of input) {
      const sample = sampleKeys(batch, this.#keys, { task: this.#task, firstRow, every: EVERY });
      if (sample.numRows > 0) yield sample;
      firstRow += batch.numRows;
      if (firstRow >= MOST_ROWS) return;
    }
  }
}
