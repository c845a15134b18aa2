import { Field, Float32, makeData, RecordBatch, Schema, Struct, type TypeMap } from 'apache-arrow';
import type { JsonObject } from '../../../engine/json.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { batchStream, type BatchStream, originOf, setOrigin } from '../../../engine/stream/stream.ts';

/** Adds a column of ones, so that pairs without ratings become implicit data. */
export class Ones implements Operator {
  readonly name = 'ones';
  readonly passesNeeds = true;
  readonly column: string;
  /** Columns of numbers that could be the rating and are not used, for a warning. */
  readonly unused: readonly string[];

  constructor(column: string, unused: readonly string[] = []) {
    this.column = column;
    this.unused = unused;
  }

  describe(): JsonObject {
    return { column: this.column };
  }

  portable() {
    return { operator: 'ones', column: this.column } as const;
  }

  static from({ column }: ReturnType<Ones['portable']>): Ones {
    return new Ones(column);
  }

  outputSchema(input: Schema): Schema {
    return new Schema([...input.fields, new Field(this.column, new Float32(), false)]);
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted?.filter((name) => name !== this.column);
  }

  execute(input: BatchStream): BatchStream {
    const schema = this.outputSchema(input.schema);
    return batchStream(schema, this.#add(input, schema));
  }

  async *#add(input: BatchStream, schema: Schema) {
    for await (const batch of input) {
      const { numRows, data } = batch;
      const ones = makeData({
        type: new Float32(),
        length: numRows,
        data: new Float32Array(numRows).fill(1),
      });
      const added = new RecordBatch(
        schema,
        makeData({
          type: new Struct<TypeMap>(schema.fields),
          length: numRows,
          nullCount: 0,
          children: [...data.children, ones],
        }),
      );
      const origin = originOf(batch);
      yield origin === undefined ? added : setOrigin(added, origin);
    }
  }
}
