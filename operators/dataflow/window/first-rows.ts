import type { RecordBatch, Schema } from 'apache-arrow';
import type { Expression } from '../../../engine/expressions/expression.ts';
import { print } from '../../../engine/expressions/print.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { batchStream, type BatchStream } from '../../../engine/stream/stream.ts';
import { FewerRows } from '../distinct-rows.ts';
import { Filter } from '../filter.ts';
import { selectColumns } from '../project.ts';
import { RowOperator } from '../row-operator.ts';
import { SortRows } from '../sort-rows.ts';
import { windowOrder, type WindowOptions, WindowRows } from './window-rows.ts';

/** Fewest rows that are sorted at a time. */
const ROWS = 1 << 16;

/**
 * Removes rows whose rank among the rows so far is too high already, before an exchange: a rank in all rows is
 * at least the rank in some of them. `predicate` is a condition on a rank, the only function of `options`. If
 * it removes few of the first rows, it passes on the others unchanged.
 */
export class FirstRows extends RowOperator {
  readonly name = 'first-rows';
  readonly keepsBatches = true;
  readonly #options: WindowOptions;
  readonly #predicate: Expression;

  constructor(options: WindowOptions, predicate: Expression) {
    super([options, predicate]);
    [this.#options, this.#predicate] = [options, predicate];
  }

  describe(): JsonObject {
    return { predicate: print(this.#predicate), of: 'each split' };
  }

  protected override readColumns(): readonly string[] {
    return windowOrder(this.#options).map(({ column }) => column);
  }

  protected async *batches(input: BatchStream, schema: Schema, ctx: ExecutionContext) {
    const operators = [
      new SortRows(windowOrder(this.#options)),
      new WindowRows(this.#options),
      new Filter(this.#predicate),
      selectColumns(schema.fields.map(({ name }) => name)),
    ];
    const fewer = new FewerRows();
    let held: RecordBatch[] = [];
    let most = ROWS;
    const first = async () => {
      const rows = held;
      held = [];
      const all = operators.reduce(
        (stream, one) => one.execute(stream, ctx),
        batchStream(schema, each(rows)),
      );
      for await (const batch of all) held.push(batch);
    };
    for await (const batch of input) {
      if (fewer.isGivenUp) {
        yield batch;
        continue;
      }
      held.push(batch);
      const given = rowsOf(held);
      if (given < most) continue;
      await first();
      const kept = rowsOf(held);
      most = 2 * kept + ROWS;
      fewer.count(given, kept);
      if (!fewer.isGivenUp) continue;
      yield* held;
      held = [];
    }
    await first();
    yield* held;
  }
}

function rowsOf(batches: readonly RecordBatch[]): number {
  return batches.reduce((sum, { numRows }) => sum + numRows, 0);
}

async function* each(batches: readonly RecordBatch[]): AsyncGenerator<RecordBatch> {
  yield* batches;
}
