import type { JsonObject } from '../../engine/json.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { RowOperator, takeRows } from './row-operator.ts';

/** Keeps the first rows, and then stops reading. */
export class Limit extends RowOperator {
  readonly name = 'limit';
  readonly passesNeeds = true;
  readonly rows: number;

  constructor(rows: number) {
    super();
    this.rows = rows;
  }

  describe(): JsonObject {
    return { rows: this.rows };
  }

  protected async *batches(input: BatchStream) {
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
