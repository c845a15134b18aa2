import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import {
  andThen,
  executePlan,
  type LogicalPlan,
  rootSource,
  schemaOf,
} from '../../engine/stream/logical-plan.ts';
import type { Description, Operator, Source } from '../../engine/stream/operator.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { Project } from '../dataflow/project.ts';
import type { Exchange } from './exchange.ts';

/** An input of a wide operator: the rows to exchange. */
export interface WideInput {
  /** Columns that are needed; default: all. */
  readonly columns: readonly string[] | undefined;
  /** Operators on the rows of each split, before the exchange. */
  readonly before: readonly Operator[];
  readonly by: Exchange;
}

/**
 * An operator that needs rows from all splits of the input, such as a group or a sort. An exchange first
 * brings rows that belong together into one part.
 */
export interface WideOperator extends Description {
  outputSchema(input: Schema): Schema;
  /** `wanted`: needed columns of the result; default: all. */
  input(schema: Schema, wanted: readonly string[] | undefined): WideInput;
  /** Operators on the rows of each part. */
  readonly after: readonly Operator[];
  /** Number of parts, if it should not depend on the size of the rows. */
  readonly parts?: number;
  /**
   * Columns of the result. A filter that uses only these may be moved before the exchange. 'all' if each row
   * of the result is a row of the input, so that every filter may be moved.
   */
  readonly filterable: readonly string[] | 'all';
  /**
   * Returns an operator that computes only the needed columns of the result. Undefined if no column can be
   * left out.
   */
  keeping?(
    needed: readonly string[],
  ): { readonly operator: WideOperator; readonly columns: readonly string[] } | undefined;
}

/** The result of a wide operator on a plan. */
export class Wide implements Source {
  readonly operator: WideOperator;
  readonly inputs: readonly LogicalPlan[];

  constructor(operator: WideOperator, inputs: readonly LogicalPlan[]) {
    [this.operator, this.inputs] = [operator, inputs];
  }

  of(inputs: readonly LogicalPlan[]): Wide {
    return new Wide(this.operator, inputs);
  }

  get name(): string {
    return this.operator.name;
  }

  get replayable(): boolean {
    return this.inputs.every((plan) => rootSource(plan).replayable);
  }

  describe(): JsonObject {
    return this.operator.describe();
  }

  async schema(): Promise<Schema> {
    return this.operator.outputSchema(await schemaOf(this.inputs[0]));
  }

  /** The plan of the rows to exchange, and how to divide them. */
  async rowsToExchange(
    wanted: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly plan: LogicalPlan; readonly by: Exchange }> {
    const [input] = this.inputs;
    const schema = await schemaOf(input, undefined, signal);
    this.operator.outputSchema(schema);
    const { columns, before, by } = this.operator.input(schema, wanted);
    const isAll = columns === undefined || columns.length === schema.fields.length;
    const select = isAll ? [] : [selectOf(columns)];
    return { plan: [...select, ...before].reduce(andThen, input), by };
  }

  /** Runs in the calling thread without an exchange: all rows are one part. */
  async execute(ctx: ExecutionContext, columns?: readonly string[]): Promise<BatchStream> {
    const { plan } = await this.rowsToExchange(columns, ctx.signal);
    const rows = await executePlan(plan, ctx);
    return this.operator.after.reduce((stream, operator) => operator.execute(stream, ctx), rows);
  }
}

function selectOf(names: readonly string[]): Project {
  const columns = names.map((name) => ({ name, value: { kind: 'column', name } }) as const);
  return new Project({ kind: 'select', columns });
}
