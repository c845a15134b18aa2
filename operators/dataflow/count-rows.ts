import { Field, Float64, makeData, Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { batchOf, RowOperator } from './row-operator.ts';

const schema = new Schema([new Field('rows', new Float64(), false)]);

/** One row with the number of rows. Several tasks give one row each; `countedRows` adds them up. */
export class CountRows extends RowOperator {
  readonly name = 'count-rows';

  constructor() {
    super([]);
  }

  describe(): JsonObject {
    return {};
  }

  override outputSchema(): Schema {
    return schema;
  }

  override requiredColumns(): readonly string[] {
    return [];
  }

  protected async *batches(input: BatchStream) {
    let rows = 0;
    for await (const { numRows } of input) rows += numRows;
    yield batchOf(schema, 1, [makeData({ type: new Float64(), data: Float64Array.of(rows) })]);
  }
}

/** Total number of rows that `CountRows` has counted. */
export async function countedRows(counts: BatchStream): Promise<number> {
  let rows = 0;
  for await (const batch of counts)
    for (const count of batch.data.children[0].values as Float64Array) rows += count;
  return rows;
}
