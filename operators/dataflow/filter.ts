import type { Schema } from 'apache-arrow';
import { checkPredicate } from '../../engine/expressions/check.ts';
import { columnsOf, type Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import { selectedRows } from '../../engine/expressions/select-rows.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Operator, ValueNeeds } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { takeRows } from './take-rows.ts';

/** Keeps the rows of which the predicate is true; rows of which it is false or null are left out. */
export class Filter implements Operator {
  readonly name = 'filter';
  readonly predicate: Expression;

  constructor(predicate: Expression) {
    this.predicate = predicate;
  }

  static from({ predicate }: ReturnType<Filter['portable']>): Filter {
    return new Filter(predicate as unknown as Expression);
  }

  describe(): JsonObject {
    return { predicate: print(this.predicate) };
  }

  portable() {
    return { operator: 'filter', predicate: this.predicate as unknown as JsonObject } as const;
  }

  /** A value that cannot be read must not pass as null: the predicate would leave its row out silently. */
  passesNeeds({ numbers }: ValueNeeds): boolean {
    return !columnsOf(this.predicate).some((name) => numbers.includes(name));
  }

  outputSchema(input: Schema): Schema {
    checkPredicate(this.predicate, input);
    return input;
  }

  requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    return wanted && [...new Set([...wanted, ...columnsOf(this.predicate)])];
  }

  execute(input: BatchStream): BatchStream {
    return batchStream(input.schema, this.#keep(input));
  }

  async *#keep(input: BatchStream) {
    const predicate = checkPredicate(this.predicate, input.schema);
    for await (const batch of input) {
      const positions = selectedRows(predicate, batch);
      if (positions.length === batch.numRows) yield batch;
      else if (positions.length > 0) yield takeRows(batch, positions);
    }
  }
}
