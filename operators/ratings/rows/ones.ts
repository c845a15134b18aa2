import { Field, Float32, makeData, Schema } from 'apache-arrow';
import type { JsonObject } from '../../../engine/json.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { RowOperator, sameRows } from '../../dataflow/row-operator.ts';

/** Adds a column of ones, so that pairs without ratings become implicit data. */
export class Ones extends RowOperator {
  readonly name = 'ones';
  readonly passesNeeds = true;
  readonly column: string;
  /** Columns of numbers that could be the rating and are not used, for a warning. */
  readonly unused: readonly string[];

  constructor(column: string, unused: readonly string[] = []) {
    super();
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

  override outputSchema(input: Schema): Schema {
    return new Schema([...input.fields, new Field(this.column, new Float32(), false)]);
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted?.filter((name) => name !== this.column);
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    for await (const batch of input) {
      const { numRows, data } = batch;
      const values = new Float32Array(numRows).fill(1);
      const ones = makeData({ type: new Float32(), length: numRows, data: values });
      yield sameRows(batch, schema, [...data.children, ones]);
    }
  }
}
