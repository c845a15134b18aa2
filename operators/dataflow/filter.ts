import { Schema } from 'apache-arrow';
import { checkPredicate } from '../../engine/expressions/check.ts';
import { columnsOf, type Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import { selectedRows } from '../../engine/expressions/select-rows.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { columnsAs, RowOperator, takeRows } from './row-operator.ts';

/**
 * Keeps the rows for which the predicate is true; false and null remove a row. `keeps`: columns of the
 * result; default: all columns of the input.
 */
export class Filter extends RowOperator {
  readonly name = 'filter';
  readonly predicate: Expression;
  readonly keeps: readonly string[] | undefined;

  constructor(predicate: Expression, keeps?: readonly string[]) {
    super([predicate, keeps]);
    [this.predicate, this.keeps] = [predicate, keeps];
  }

  describe(): JsonObject {
    return { predicate: print(this.predicate), ...(this.keeps && { keeps: [...this.keeps] }) };
  }

  /**
   * A source with such needs returns null for a value that cannot be read. In a column of the predicate, that
   * would remove the row silently instead of reporting the bad value, so such needs are not passed to the
   * source.
   */
  passesNeeds({ numbers }: ValueNeeds): boolean {
    return !columnsOf(this.predicate).some((name) => numbers.includes(name));
  }

  override outputSchema(input: Schema): Schema {
    checkPredicate(this.predicate, input);
    const { keeps } = this;
    if (keeps === undefined) return input;
    const fields = input.fields.filter(({ name }) => keeps.includes(name));
    return new Schema(fields, input.metadata);
  }

  protected override readColumns(): readonly string[] {
    return columnsOf(this.predicate);
  }

  override requiredColumns(wanted = this.keeps): readonly string[] | undefined {
    return super.requiredColumns(wanted);
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const predicate = checkPredicate(this.predicate, input.schema);
    for await (const batch of input) {
      const positions = selectedRows(predicate, batch);
      if (positions.length === 0) continue;
      const kept = this.keeps ? columnsAs(batch, schema) : batch;
      yield positions.length === batch.numRows ? kept : takeRows(kept, positions);
    }
  }
}
