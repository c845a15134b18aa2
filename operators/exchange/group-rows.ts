import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import { Aggregate, type AggregateOptions } from '../dataflow/aggregate/aggregate.ts';
import type { WideInput, WideOperator } from './wide.ts';

/**
 * Computes aggregates: one row for each distinct combination of the keys' values. Tasks first aggregate the
 * rows of their split, and after the exchange merge the results of each part.
 */
export class GroupRows implements WideOperator {
  readonly name = 'group-rows';
  readonly after: readonly Aggregate[];
  /** Without keys all rows are one group, even for an empty input. */
  readonly parts?: 1;
  readonly #options: Omit<AggregateOptions, 'step'>;
  readonly #partial: Aggregate;

  constructor(options: Omit<AggregateOptions, 'step'>) {
    this.#options = options;
    this.#partial = new Aggregate({ ...options, step: 'partial' });
    this.after = [new Aggregate({ ...options, step: 'final' })];
    if (options.keys.length === 0) this.parts = 1;
  }

  get filterable(): readonly string[] {
    return this.#options.keys;
  }

  /** Keeps at least one aggregate. */
  keeping(needed: readonly string[]): ReturnType<NonNullable<WideOperator['keeping']>> {
    const { keys, aggregations: all } = this.#options;
    const wanted = all.filter(({ name }) => needed.includes(name));
    const aggregations = keys.length + wanted.length > 0 ? wanted : all.slice(0, 1);
    if (aggregations.length === all.length) return undefined;
    const columns = [...keys, ...aggregations.map(({ name }) => name)];
    return { operator: new GroupRows({ keys, aggregations }), columns };
  }

  describe(): JsonObject {
    const { keys, aggregates } = this.#partial.describe();
    return { keys, aggregates };
  }

  outputSchema(input: Schema): Schema {
    return this.after[0].outputSchema(this.#partial.outputSchema(input));
  }

  input(): WideInput {
    const { keys } = this.#options;
    return {
      columns: undefined,
      before: [this.#partial],
      by: keys.length === 0 ? { kind: 'evenly' } : { kind: 'hash', columns: [...keys] },
    };
  }
}
