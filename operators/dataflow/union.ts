import { type RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import { arrowTypeOf, isTime, type ValueType, valueTypeOf } from '../../engine/expressions/types.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import {
  andThen,
  executePlan,
  type LogicalPlan,
  rootSource,
  schemaOf,
} from '../../engine/stream/logical-plan.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { exactType } from './join/join-columns.ts';
import { type NamedExpression, Project } from './project.ts';
import { columnsAs } from './row-operator.ts';

/** Prepares a plan to run: optimizes it for the wanted columns, and lets threads read it if possible. */
export type PreparePlan = (plan: LogicalPlan, columns?: readonly string[]) => Promise<LogicalPlan>;

/**
 * The rows of several plans, one after the other. Columns have the names and the order of the first plan, and a
 * type that has the values of all plans.
 */
export class Union implements Source {
  readonly name = 'union';
  readonly inputs: readonly LogicalPlan[];
  readonly #prepare: PreparePlan;

  constructor(inputs: readonly LogicalPlan[], prepare: PreparePlan) {
    this.inputs = inputs;
    this.#prepare = prepare;
  }

  /** A union of other inputs with the same settings. */
  of(inputs: readonly LogicalPlan[]): Union {
    return new Union(inputs, this.#prepare);
  }

  get replayable(): boolean {
    return this.inputs.every((plan) => rootSource(plan).replayable);
  }

  describe(): JsonObject {
    return { inputs: this.inputs.length };
  }

  /**
   * This union with columns of its inputs cast, so that all inputs have equal types, and its schema. Throws
   * UsageError if columns differ in number or name, or in type without a type that has the values of all.
   */
  async opened(
    needs?: ValueNeeds,
    signal?: AbortSignal,
  ): Promise<{ readonly union: Union; readonly schema: Schema }> {
    const schemas = await Promise.all(this.inputs.map((plan) => schemaOf(plan, needs, signal)));
    const types = commonTypes(schemas);
    const casts = schemas.map((schema) => castsTo(types, schema));
    const union = casts.every((cast) => cast === undefined)
      ? this
      : this.of(this.inputs.map((plan, i) => (casts[i] ? andThen(plan, casts[i]) : plan)));
    // To ask the inputs again would double the work with each union of a chain.
    const [first, ...others] = schemas.map((schema, i) => casts[i]?.outputSchema(schema) ?? schema);
    const mayBeNull = (name: string) =>
      others.some(({ fields }) => fields.some((field) => field.name === name && field.nullable));
    const fields = first.fields.map((field) =>
      field.clone({ nullable: field.nullable || mayBeNull(field.name) }),
    );
    return { union, schema: new Schema(fields, first.metadata) };
  }

  async schema(needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    return (await this.opened(needs, signal)).schema;
  }

  async execute(
    ctx: ExecutionContext,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    const { union, schema: whole } = await this.opened(needs, ctx.signal);
    const names = columns ?? whole.fields.map(({ name }) => name);
    const schema = whole.select(whole.fields.map(({ name }) => name).filter((name) => names.includes(name)));
    return batchStream(schema, this.#all(union.inputs, schema, ctx, columns, needs));
  }

  async *#all(
    inputs: readonly LogicalPlan[],
    schema: Schema,
    ctx: ExecutionContext,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
  ): AsyncGenerator<RecordBatch> {
    for (const plan of inputs)
      for await (const batch of await executePlan(await this.#prepare(plan, columns), ctx, columns, needs))
        // Inputs may have these columns in another order, and further columns.
        yield columnsAs(batch, schema);
  }
}

function castsTo(types: ReadonlyMap<string, ValueType>, { fields }: Schema): Project | undefined {
  const columns = fields.flatMap(({ name, type }): NamedExpression[] => {
    const to = types.get(name);
    if (to === undefined || `${type}` === `${arrowTypeOf(to)}`) return [];
    return [{ name, value: { kind: 'cast', value: { kind: 'column', name }, to, onError: 'error' } }];
  });
  return columns.length === 0 ? undefined : new Project({ kind: 'with', columns });
}

/** The types of columns whose types differ. Throws UsageError if there is none that has the values of all. */
function commonTypes([first, ...others]: readonly Schema[]): ReadonlyMap<string, ValueType> {
  const wanted = new Map<string, ValueType>();
  others.forEach(({ fields }, i) => {
    const number = i + 2;
    if (first.fields.length !== fields.length)
      throw wrong(`input ${number} has ${fields.length} columns, and the first ${first.fields.length}`);
    for (const { name, type } of first.fields) {
      const other = fields.find((field) => field.name === name)?.type;
      if (other === undefined) throw wrong(`input ${number} has no column "${name}"`);
      const to = wanted.get(name);
      const own = to === undefined ? type : arrowTypeOf(to);
      if (`${other}` === `${own}`) continue;
      const common = isTime(valueTypeOf(own)) ? undefined : exactType(own, other);
      if (common === undefined)
        throw wrong(`"${name}" is ${other} in input ${number}, and ${own} in the first`);
      wanted.set(name, common);
    }
  });
  return wanted;
}

function wrong(text: string): UsageError {
  return new UsageError(`union: ${text}`, {
    advice: 'Select the same columns of both, and cast those that differ',
  });
}
