import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { Aggregate, type AggregateOptions } from '../dataflow/aggregate/aggregate.ts';
import type { WideInput, WideOperator } from './wide.ts';

/** A row for each distinct combination of the keys' values: partial aggregates of splits, final ones of parts. */
export class GroupRows implements WideOperator {
  readonly name = 'group-rows';
  readonly after: readonly Aggregate[];
  /** Without keys all rows are one group, also where there are none. */
  readonly parts?: 1;
  readonly #keys: readonly string[];
  readonly #partial: Aggregate;

  constructor(options: Omit<AggregateOptions, 'step'>) {
    this.#keys = options.keys;
    this.#partial = new Aggregate({ ...options, step: 'partial' });
    this.after = [new Aggregate({ ...options, step: 'final' })];
    if (options.keys.length === 0) this.parts = 1;
  }

  get filterable(): readonly string[] {
    return this.#keys;
  }

  describe(): JsonObject {
    const { keys, aggregates } = this.#partial.describe();
    return { keys, aggregates };
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(this.#partial.outputSchema(input));
  }

  input(): WideInput {
    return {
      columns: undefined,
      before: [this.#partial],
      by: this.#keys.length === 0 ? { kind: 'evenly' } : { kind: 'hash', columns: [...this.#keys] },
    };
  }
}
