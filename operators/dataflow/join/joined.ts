import type { Schema } from 'apache-arrow';
import type { JsonObject } from '../../../engine/json.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import {
  andThen,
  executePlan,
  fromSource,
  type LogicalPlan,
  rootSource,
  schemaOf,
} from '../../../engine/stream/logical-plan.ts';
import type { Side, Source, ValueNeeds } from '../../../engine/stream/operator.ts';
import type { BatchStream } from '../../../engine/stream/stream.ts';
import { type NamedExpression, Project, selectColumns } from '../project.ts';
import type { PreparePlan } from '../union.ts';
import {
  commonKeyType,
  comparedPairs,
  type JoinParams,
  keyField,
  needsCast,
  type Schemas,
} from './join-columns.ts';
import { describeJoin, JoinRows } from './join-rows.ts';

/** The inputs of a join: left, right. */
export type JoinInputs = readonly [LogicalPlan, LogicalPlan];

/** The plan of a join of two plans. */
export function joinedRows(inputs: JoinInputs, params: JoinParams, prepare: PreparePlan): LogicalPlan {
  return fromSource(new Joined(inputs, params, prepare));
}

/** The rows of two plans whose keys are equal, joined by the calling thread. */
export class Joined implements Source {
  readonly name = 'join';
  readonly inputs: JoinInputs;
  readonly params: JoinParams;
  readonly #prepare: PreparePlan;

  constructor(inputs: JoinInputs, params: JoinParams, prepare: PreparePlan) {
    [this.inputs, this.params, this.#prepare] = [inputs, new JoinRows(params).params, prepare];
  }

  /** A join with the same settings of other inputs. */
  of(inputs: JoinInputs): Joined {
    return new Joined(inputs, this.params, this.#prepare);
  }

  get replayable(): boolean {
    return this.inputs.every((plan) => rootSource(plan).replayable);
  }

  describe(): JsonObject {
    return describeJoin(this.params);
  }

  /**
   * Throws UsageError for keys that are missing or have incompatible types, and for a name that both sides
   * have.
   */
  async schema(_needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    const { left, right } = (await this.#opened(signal)).schemas;
    return new JoinRows(this.params).outputSchema(left, right);
  }

  /**
   * This join with the keys of one input cast, so that the keys of both have equal types; `schemas`: the
   * schemas of the inputs.
   */
  comparable(schemas: Schemas): Joined {
    const [left, right] = this.inputs;
    return this.of([
      withCasts(left, this.params, schemas, 'left'),
      withCasts(right, this.params, schemas, 'right'),
    ]);
  }

  /**
   * This join in the form in which it runs: keys have equal types, and inputs lack the columns that the
   * result's `columns` do not need.
   */
  async prepared(columns: readonly string[] | undefined, signal: AbortSignal): Promise<Joined> {
    const { inputs, schemas } = await this.#opened(signal);
    const required = new JoinRows(this.params).requiredColumns(columns, schemas.left, schemas.right);
    return this.of([
      selected(inputs[0], schemas.left, required.left),
      selected(inputs[1], schemas.right, required.right),
    ]);
  }

  async execute(ctx: ExecutionContext, columns?: readonly string[]): Promise<BatchStream> {
    const { inputs, params } = await this.prepared(columns, ctx.signal);
    const stream = async (plan: LogicalPlan) => executePlan(await this.#prepare(plan), ctx);
    const streams = [await stream(inputs[0]), await stream(inputs[1])] as const;
    return new JoinRows({ ...params, ...(columns && { keeps: columns }) }).execute(...streams, ctx);
  }

  /** The inputs with comparable keys, and their schemas. */
  async #opened(signal?: AbortSignal): Promise<{ readonly inputs: JoinInputs; readonly schemas: Schemas }> {
    const [left, right] = await Promise.all(this.inputs.map((plan) => schemaOf(plan, undefined, signal)));
    const { inputs } = this.comparable({ left, right });
    const [own, other] = [left, right].map((schema, i) => withCastsSchema(inputs[i], this.inputs[i], schema));
    return { inputs, schemas: { left: own, right: other } };
  }
}

/**
 * The columns of an input after `withCasts`. To ask the plan again would double the work with each join of a
 * chain.
 */
function withCastsSchema(plan: LogicalPlan, given: LogicalPlan, schema: Schema): Schema {
  return plan === given || plan.kind === 'source' ? schema : plan.operator.outputSchema(schema);
}

function withCasts(plan: LogicalPlan, params: JoinParams, schemas: Schemas, side: Side): LogicalPlan {
  const columns = comparedPairs(params).flatMap(({ left, right }): NamedExpression[] => {
    const fields = { left: keyField(schemas, 'left', left), right: keyField(schemas, 'right', right) };
    const to = commonKeyType(fields.left, fields.right);
    const own = fields[side];
    if (to === undefined || !needsCast(own.type, to)) return [];
    return [
      {
        name: own.name,
        value: { kind: 'cast', value: { kind: 'column', name: own.name }, to, onError: 'error' },
      },
    ];
  });
  return columns.length === 0 ? plan : andThen(plan, new Project({ kind: 'with', columns }));
}

function selected(plan: LogicalPlan, { fields }: Schema, names: readonly string[]): LogicalPlan {
  if (names.length === fields.length) return plan;
  return andThen(plan, selectColumns(names));
}
