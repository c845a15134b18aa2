import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { columnAt } from '../dataflow/column-at.ts';
import type { WideInput, WideOperator } from './wide.ts';

/**
 * Divides rows into a given number of parts, by the hash of some columns or round-robin. The rows do not
 * change.
 */
export class Repartition implements WideOperator {
  readonly name = 'repartition';
  readonly parts: number;
  readonly after = [];
  readonly filterable = 'all';
  readonly #columns: readonly string[];

  constructor(parts: number, columns: readonly string[]) {
    [this.parts, this.#columns] = [parts, columns];
  }

  describe(): JsonObject {
    const columns = this.#columns;
    return { parts: this.parts, ...(columns.length > 0 && { columns: [...columns] }) };
  }

  outputSchema(input: Schema): Schema {
    const names = input.fields.map(({ name }) => name);
    for (const name of this.#columns) columnAt(name, names, 'to repartition by');
    return input;
  }

  input(_schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const columns = this.#columns;
    return {
      columns: wanted && [...new Set([...wanted, ...columns])],
      before: [],
      by: columns.length === 0 ? { kind: 'evenly' } : { kind: 'hash', columns: [...columns] },
    };
  }
}
