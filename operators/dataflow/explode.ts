import type { Data, RecordBatch, Schema } from 'apache-arrow';
import { Schema as Columns } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { hasNulls, isNullAt } from '../../engine/keys/arrow-keys.ts';
import { joinData } from '../../engine/stream/join-data.ts';
import { type BatchStream, setTakenOrigin } from '../../engine/stream/stream.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { elementsAt, isList } from '../../engine/values/value-texts.ts';
import { batchOf, columnAt, RowOperator } from './row-operator.ts';

/** Rows of a batch of the output, at most. */
const MOST_ROWS = 65_536;

/**
 * A row for each element of a list column, with the other columns repeated. A null or empty list gives no row,
 * or with `keepEmpty` one with a null.
 */
export class Explode extends RowOperator {
  readonly name = 'explode';
  readonly #column: string;
  readonly #keepEmpty: boolean;

  constructor(column: string, keepEmpty = false) {
    super([column, keepEmpty]);
    [this.#column, this.#keepEmpty] = [column, keepEmpty];
  }

  describe(): JsonObject {
    return { column: this.#column, ...(this.#keepEmpty && { keepEmpty: true }) };
  }

  protected override readColumns(): readonly string[] {
    return [this.#column];
  }

  override outputSchema({ fields, metadata }: Schema): Schema {
    const names = fields.map(({ name }) => name);
    const field = fields[columnAt(this.#column, names, 'to explode')];
    if (!isList(field.type))
      throw new UsageError(`explode takes a column of lists, and "${this.#column}" is ${field.type}`);
    const [{ type }] = field.type.children;
    const made = field.clone({ type, nullable: true });
    return new Columns(
      fields.map((one) => (one === field ? made : one)),
      metadata,
    );
  }

  protected async *batches(input: BatchStream, schema: Schema): AsyncGenerator<RecordBatch> {
    const index = schema.fields.findIndex(({ name }) => name === this.#column);
    for await (const batch of input) {
      const lists = batch.data.children[index];
      const [elementsColumn] = lists.children;
      const values = this.#keepEmpty ? joinData(elementsColumn.type, [elementsColumn], 1) : elementsColumn;
      const { rows, elements } = positionsOf(lists, this.#keepEmpty);
      for (let from = 0; from < rows.length; from += MOST_ROWS) {
        const own = rows.subarray(from, from + MOST_ROWS);
        const children = batch.data.children.map((data, i) =>
          i === index ? takeData(values, elements.subarray(from, from + MOST_ROWS)) : takeData(data, own),
        );
        yield setTakenOrigin(batchOf(schema, own.length, children), batch, own);
      }
    }
  }
}

/**
 * The row and the position in the lists' child column of each element. `keepEmpty`: a list without elements
 * has the position after the last.
 */
function positionsOf(lists: Data, keepEmpty: boolean) {
  const { length } = lists;
  const [from, to] = [new Uint32Array(length), new Uint32Array(length)];
  const mayBeNull = hasNulls(lists);
  let total = 0;
  for (let row = 0; row < length; row++) {
    if (!(mayBeNull && isNullAt(lists, row))) [from[row], to[row]] = elementsAt(lists, row);
    if (keepEmpty && from[row] === to[row]) {
      from[row] = lists.children[0].length;
      to[row] = from[row] + 1;
    }
    total += to[row] - from[row];
  }
  const [rows, elements] = [new Uint32Array(total), new Uint32Array(total)];
  for (let row = 0, at = 0; row < length; row++)
    for (let element = from[row]; element < to[row]; element++, at++) {
      rows[at] = row;
      elements[at] = element;
    }
  return { rows, elements };
}
