import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeRows } from './take-rows.ts';

/** Keeps the first rows, and then stops reading. */
export class Limit implements Operator {
  readonly name = 'limit';
  readonly passesNeeds = true;
  readonly rows: number;

  constructor(rows: number) {
    this.rows = rows;
  }

  describe(): JsonObject {
    return { rows: this.rows };
  }

  outputSchema(input: Schema): Schema {
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted;
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(input.schema, this.#first(input));
  }

  async *#first(input: BatchStream) {
    let left = this.rows;
    if (left === 0) return;
    for await (const batch of input) {
      if (batch.numRows < left) {
        left -= batch.numRows;
        yield batch;
        continue;
      }
      yield batch.numRows === left
        ? batch
        : takeRows(
            batch,
            Uint32Array.from({ length: left }, (_, i) => i),
          );
      return;
    }
  }
}
