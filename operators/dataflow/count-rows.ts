import { Field, Float64, makeData, RecordBatch, Schema, Struct } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';

const schema = new Schema([new Field('rows', new Float64(), false)]);

/** One row with the number of rows. Several tasks give one row each; `countedRows` adds them up. */
export class CountRows implements Operator {
  readonly name = 'count-rows';

  static from(): CountRows {
    return new CountRows();
  }

  describe(): JsonObject {
    return {};
  }

  portable() {
    return { operator: 'count-rows' } as const;
  }

  outputSchema(): Schema {
    return schema;
  }

  requiredColumns(): readonly string[] {
    return [];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(schema, this.#count(input));
  }

  async *#count(input: BatchStream) {
    let rows = 0;
    for await (const { numRows } of input) rows += numRows;
    const type = new Struct<{ rows: Float64 }>(schema.fields);
    const children = [makeData({ type: new Float64(), data: Float64Array.of(rows) })];
    yield new RecordBatch(schema, makeData({ type, length: 1, nullCount: 0, children }));
  }
}

/** Total number of rows that `CountRows` has counted. */
export async function countedRows(counts: BatchStream): Promise<number> {
  let rows = 0;
  for await (const batch of counts)
    for (const count of batch.data.children[0].values as Float64Array) rows += count;
  return rows;
}
