import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';
import { SortRows } from '../dataflow/sort/sort-rows.ts';
import type { WideInput, WideOperator } from './wide.ts';

/**
 * Sorts all rows by some keys: the exchange divides them into ranges of the keys, and each range is sorted.
 */
export class OrderRows implements WideOperator {
  readonly name = 'order-rows';
  readonly after: readonly [SortRows];
  readonly filterable = 'all';

  constructor(keys: readonly SortKey[]) {
    this.after = [new SortRows(keys)];
  }

  describe(): JsonObject {
    return this.after[0].describe();
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(input);
  }

  input(_schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const [sort] = this.after;
    const keys = sort.keys.map((key) => ({ ...key }));
    return { columns: sort.requiredColumns(wanted), before: [], by: { kind: 'range', keys } };
  }
}
