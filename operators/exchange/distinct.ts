import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { DistinctRows } from '../dataflow/distinct-rows.ts';
import type { WideInput, WideOperator } from './wide.ts';

/** Keeps the first row of each combination of values of some columns. Default: all columns. */
export class Distinct implements WideOperator {
  readonly name = 'distinct';
  readonly after: readonly DistinctRows[];
  readonly #keys: readonly string[] | undefined;

  constructor(given?: readonly string[]) {
    const keys = given && [...new Set(given)];
    this.#keys = keys;
    this.after = [new DistinctRows({ step: 'whole', ...(keys && { keys }) })];
  }

  get filterable(): readonly string[] | 'all' {
    return this.#keys ?? 'all';
  }

  describe(): JsonObject {
    return { columns: this.#keys ? [...this.#keys] : 'all' };
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(input);
  }

  input(schema: Schema, wanted: readonly string[] | undefined): WideInput {
    const keys = this.#keys;
    const partial = new DistinctRows({ step: 'partial', ...(keys && { keys }) });
    const names = schema.fields.map(({ name }) => name);
    const columns = keys && wanted && names.filter((name) => wanted.includes(name) || keys.includes(name));
    return {
      columns,
      before: [partial],
      by: { kind: 'hash', columns: [...(keys ?? names)] },
    };
  }
}
