import type { RecordBatch, Schema } from 'apache-arrow';
import { Schema as Columns } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type BatchStream, setTakenOrigin } from '../../engine/stream/stream.ts';
import { takeData } from '../../engine/stream/take-data.ts';
import { elementsAt, isList } from '../../engine/values/value-texts.ts';
import { batchOf, columnAt, RowOperator } from './row-operator.ts';

/** Rows of a batch of the output, at most. */
const MOST_ROWS = 65_536;

/** A row for each element of a list column, with the other columns repeated; none for a null or empty list. */
export class Explode extends RowOperator {
  readonly name = 'explode';
  readonly #column: string;

  constructor(column: string) {
    super([column]);
    this.#column = column;
  }

  describe(): JsonObject {
    return { column: this.#column };
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
      const { rows, elements } = positionsOf(batch, index);
      for (let from = 0; from < rows.length; from += MOST_ROWS) {
        const own = rows.subarray(from, from + MOST_ROWS);
        const children = batch.data.children.map((data, i) =>
          i === index
            ? takeData(data.children[0], elements.subarray(from, from + MOST_ROWS))
            : takeData(data, own),
        );
        yield setTakenOrigin(batchOf(schema, own.length, children), batch, own);
      }
    }
  }
}

/** The row and the position in the lists' child column of each element. */
function positionsOf({ data, numRows }: RecordBatch, index: number) {
  const lists = data.children[index];
  const ranges = Array.from({ length: numRows }, (_, row) =>
    lists.getValid(row) ? elementsAt(lists, row) : ([0, 0] as const),
  );
  const length = ranges.reduce((sum, [from, to]) => sum + to - from, 0);
  const [rows, elements] = [new Uint32Array(length), new Uint32Array(length)];
  let at = 0;
  for (const [row, [from, to]] of ranges.entries())
    for (let element = from; element < to; element++, at++) [rows[at], elements[at]] = [row, element];
  return { rows, elements };
}
