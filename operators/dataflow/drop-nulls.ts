import type { RecordBatch, Schema } from 'apache-arrow';
import { check } from '../../engine/expressions/check.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ValueNeeds } from '../../engine/stream/operator.ts';
import { RowFilter } from './row-operator.ts';

/** Removes rows with a null in one of the given columns; default: in any column. */
export class DropNulls extends RowFilter {
  readonly name = 'drop-nulls';
  readonly isRowwise = true;
  readonly #names: readonly string[] | undefined;

  constructor(names?: readonly string[]) {
    super([names]);
    this.#names = names;
  }

  describe(): JsonObject {
    return { columns: this.#names ? [...this.#names] : 'all' };
  }

  /**
   * A source with such needs returns null for a value that cannot be read. In a column that this operator
   * checks, that would remove the row silently instead of reporting the bad value, so such needs are not
   * passed to the source.
   */
  passesNeeds({ numbers }: ValueNeeds): boolean {
    return this.#names !== undefined && !this.#names.some((name) => numbers.includes(name));
  }

  override outputSchema(input: Schema): Schema {
    for (const name of this.#names ?? []) check({ kind: 'column', name }, input);
    return input;
  }

  protected override readColumns(): readonly string[] | undefined {
    return this.#names;
  }

  protected selection({ fields }: Schema) {
    const columns = [...fields.keys()].filter((i) => this.#names?.includes(fields[i].name) ?? true);
    return (batch: RecordBatch) => wholeRows(batch, columns);
  }
}

/** Positions of the rows without a null; undefined if no row has one. */
function wholeRows({ data, numRows }: RecordBatch, columns: readonly number[]): Uint32Array | undefined {
  const nullable = columns.map((i) => data.children[i]).filter(({ nullCount }) => nullCount > 0);
  if (nullable.length === 0) return undefined;
  const positions = new Uint32Array(numRows);
  let kept = 0;
  for (let row = 0; row < numRows; row++)
    if (nullable.every((column) => column.getValid(row))) positions[kept++] = row;
  return positions.subarray(0, kept);
}
