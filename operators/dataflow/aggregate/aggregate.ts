import { Null, Schema } from 'apache-arrow';
import { UsageError } from '../../../engine/errors.ts';
import { check } from '../../../engine/expressions/check.ts';
import { columnsOf } from '../../../engine/expressions/expression.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { plainType } from '../../../engine/stream/plain-data.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../../engine/stream/stream.ts';
import { columnAt } from '../column-at.ts';
import type { Aggregation } from './aggregation.ts';
import { argumentType } from './argument.ts';
import { MOST_COUNTED } from './counts.ts';
import { FewerRows } from './fewer-rows.ts';
import { aggregationJson, formOf, formOfState, textOf } from './functions.ts';
import { type Grouping, Groups } from './groups.ts';
import type { AggregateStep } from './aggregated-columns.ts';

export interface AggregateOptions {
  /** Names of columns. */
  readonly keys: readonly string[];
  readonly aggregations: readonly Aggregation[];
  readonly step: AggregateStep;
}

/**
 * Groups rows by key columns and aggregates each group: one output row for each distinct combination of key
 * values, in order of first occurrence. Without keys, steps 'final' and 'whole' return exactly one row, even
 * for empty input; a caller that divides the input must then run the step for one of the parts only. A
 * partial step whose groups turn out to be nearly as numerous as its rows stops grouping: it passes each
 * further row on as a group of its own.
 */
export class Aggregate implements Operator {
  readonly name = 'aggregate';
  readonly takesAllRows: boolean;
  readonly #options: AggregateOptions;

  constructor(options: AggregateOptions) {
    this.#options = options;
    this.takesAllRows = options.step !== 'partial';
    const names = [...options.keys, ...options.aggregations.map(({ name }) => name)];
    const twice = names.find((name, i) => names.indexOf(name) < i);
    if (twice !== undefined)
      throw new UsageError(`the result would have the column "${twice}" twice`, {
        advice: "Name aggregates with as: sum(col('plays')).as('total')",
      });
  }

  static from({ keys, aggregations, step }: ReturnType<Aggregate['portable']>): Aggregate {
    return new Aggregate({ keys, aggregations: aggregations as unknown as readonly Aggregation[], step });
  }

  portable() {
    const { keys, aggregations, step } = this.#options;
    const json = aggregations.map(aggregationJson);
    return { operator: 'aggregate', keys: [...keys], aggregations: json, step } as const;
  }

  /** Keys of a partial step. */
  get mergedBy(): readonly string[] | undefined {
    const { step, keys } = this.#options;
    return step === 'partial' ? keys : undefined;
  }

  describe(): JsonObject {
    const { keys, aggregations, step } = this.#options;
    const aggregates = aggregations.map((one) => `${textOf(one)} as ${one.name}`);
    return { step, keys: [...keys], aggregates };
  }

  requiredColumns(): readonly string[] | undefined {
    const { keys, aggregations, step } = this.#options;
    if (step === 'final') return undefined;
    const values = aggregations.flatMap(({ value }) => (value === undefined ? [] : columnsOf(value)));
    return [...new Set([...keys, ...values])];
  }

  outputSchema(input: Schema): Schema {
    const { keys, columns } = this.#grouping(input);
    const fields = columns.flatMap(({ form }) =>
      this.#options.step === 'partial' ? form.states : [form.result],
    );
    return new Schema([...keys.map(({ field }) => field), ...fields]);
  }

  execute(input: BatchStream): BatchStream {
    const schema = this.outputSchema(input.schema);
    const grouping = this.#grouping(input.schema);
    return batchStream(schema, this.#aggregate(input, { ...grouping, schema }));
  }

  async *#aggregate(input: BatchStream, grouping: Grouping) {
    const { keys, step } = grouping;
    const fewer = new FewerRows();
    let groups = new Groups(grouping);
    for await (const batch of input) {
      if (batch.numRows === 0) continue;
      if (fewer.isGivenUp) {
        yield* new Groups(grouping).addEach(batch).batches();
        continue;
      }
      if (step === 'partial' && groups.rows + batch.numRows > MOST_COUNTED) {
        yield* groups.batches();
        groups = new Groups(grouping);
      }
      const before = groups.size;
      groups.add(batch);
      if (step !== 'partial' || keys.length === 0) continue;
      fewer.count(batch.numRows, groups.size - before);
      if (!fewer.isGivenUp) continue;
      yield* groups.batches();
      groups = new Groups(grouping);
    }
    yield* groups.batches();
  }

  #grouping(input: Schema): Omit<Grouping, 'schema'> {
    const { keys, step } = this.#options;
    const names = input.fields.map(({ name }) => name);
    const own = keys.map((name) => {
      const index = columnAt(name, names, 'to group by');
      const field = input.fields[index];
      return { index, field: field.clone({ type: plainType(field.type) }) };
    });
    return { keys: own, columns: step === 'final' ? this.#ofStates(input) : this.#ofRows(input), step };
  }

  #ofRows(input: Schema): Grouping['columns'] {
    return this.#options.aggregations.map((aggregation) => {
      const { value } = aggregation;
      if (value === undefined) return { form: formOf(aggregation, new Null()), states: [] };
      const checked = check(value, input);
      const metadata = checked.kind === 'column' ? input.fields[checked.index].metadata : undefined;
      return { form: formOf(aggregation, argumentType(checked, input), metadata), checked, states: [] };
    });
  }

  #ofStates(input: Schema): Grouping['columns'] {
    let next = this.#options.keys.length;
    return this.#options.aggregations.map((aggregation) => {
      const form = formOfState(aggregation, input.fields[next]);
      const states = form.states.map((_, i) => next + i);
      next += states.length;
      return { form, states };
    });
  }
}
