import { type RecordBatch, Schema } from 'apache-arrow';
import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { executePlan, type LogicalPlan, rootSource, schemaOf } from '../../engine/stream/logical-plan.ts';
import type { Source, ValueNeeds } from '../../engine/stream/operator.ts';
import { batchStream, type BatchStream } from '../../engine/stream/stream.ts';
import { columnsAs } from './row-operator.ts';

/** Prepares a plan to run: optimizes it for the wanted columns, and lets threads read it if possible. */
export type PreparePlan = (plan: LogicalPlan, columns?: readonly string[]) => Promise<LogicalPlan>;

/** The rows of several plans, one after the other. Columns have the names and the order of the first plan. */
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

  /** Throws UsageError if columns differ in number, name or type. */
  async schema(needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    const [first, ...others] = await Promise.all(this.inputs.map((plan) => schemaOf(plan, needs, signal)));
    others.forEach((schema, i) => requireSame(first, schema, i + 2));
    const mayBeNull = (name: string) =>
      others.some(({ fields }) => fields.some((field) => field.name === name && field.nullable));
    return new Schema(
      first.fields.map((field) => field.clone({ nullable: field.nullable || mayBeNull(field.name) })),
      first.metadata,
    );
  }

  async execute(
    ctx: ExecutionContext,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    const whole = await this.schema(needs, ctx.signal);
    const names = columns ?? whole.fields.map(({ name }) => name);
    const schema = whole.select(whole.fields.map(({ name }) => name).filter((name) => names.includes(name)));
    return batchStream(schema, this.#all(schema, ctx, columns, needs));
  }

  async *#all(
    schema: Schema,
    ctx: ExecutionContext,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
  ): AsyncGenerator<RecordBatch> {
    for (const plan of this.inputs)
      for await (const batch of await executePlan(await this.#prepare(plan, columns), ctx, columns, needs))
        // Inputs may have these columns in another order, and further columns.
        yield columnsAs(batch, schema);
  }
}

function requireSame(first: Schema, other: Schema, number: number): void {
  const wrong = (text: string) =>
    new UsageError(`union: ${text}`, {
      advice: 'Select the same columns of both, and cast those that differ',
    });
  if (first.fields.length !== other.fields.length)
    throw wrong(`input ${number} has ${other.fields.length} columns, and the first ${first.fields.length}`);
  for (const { name, type } of first.fields) {
    const found = other.fields.find((field) => field.name === name);
    if (found === undefined) throw wrong(`input ${number} has no column "${name}"`);
    if (`${found.type}` === `${type}`) continue;
    const [was, is] = [type, found.type].map((one) => `${one}`);
    throw wrong(`"${name}" is ${is} in input ${number}, and ${was} in the first`);
  }
}
