import type { RecordBatch, Schema } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import {
  andThen,
  executePlan,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
  sourceRequest,
} from '../../engine/stream/logical-plan.ts';
import { type Operator, runsBySplit, type Source, type ValueNeeds } from '../../engine/stream/operator.ts';
import type { ReadSplit } from '../../engine/stream/split.ts';
import { type BatchStream, batchStream } from '../../engine/stream/stream.ts';
import { JoinRows } from '../dataflow/join/join-rows.ts';
import { Joined } from '../dataflow/join/joined.ts';
import { optimize } from '../dataflow/optimize.ts';
import { selectColumns } from '../dataflow/project.ts';
import { SortRows } from '../dataflow/sort-rows.ts';
import { Limit } from '../dataflow/top-rows.ts';
import { Union } from '../dataflow/union.ts';
import { ExchangeRoom } from '../exchange/exchange-room.ts';
import { PartSizes, SPLIT_BYTES, SPLIT_ROWS } from '../exchange/exchange.ts';
import { ExchangedRows, type ExchangeInput, UnitedRows } from '../exchange/exchanged-rows.ts';
import { JoinedExchange } from '../exchange/joined-exchange.ts';
import { OrderRows, Wide } from '../exchange/wide-operators.ts';
import { RowTasks } from './read-rows-tasks.ts';
import { groupSplits } from './read-splits.ts';
import { afterExchange, exchangeWork, type RowsWork } from './task-input.ts';

/**
 * With fewer threads, the calling thread reads a source as fast as tasks do, if the batches are the same and
 * no operator runs on them. Text in ranges of bytes has other batches, so tasks always read it.
 */
const FEWEST_THREADS = 4;

/** Settings for reading a plan's rows. */
interface RowsReading {
  /** Reads a split in the calling thread. */
  readonly readHere: ReadSplit;
  /** Stored bytes of each task. */
  readonly splitBytes?: number | undefined;
  /** Host memory of exchanges; default: no limit. */
  readonly room?: ExchangeRoom;
}

/**
 * Makes the device's threads read a plan's source and run its operators up to the first that cannot run
 * there. The calling thread reads sources without splits, unless they are an exchange.
 */
export function inThreads(plan: LogicalPlan, reading: RowsReading): LogicalPlan {
  const { source, rest } = splitSource(withExchanges(plan), reading);
  return rest.reduce(andThen, fromSource(source));
}

/** Describes for `explain` how `inThreads` reads a plan's rows. */
interface RowsPlan {
  /** Operators that run in the tasks that read the source. */
  readonly pipeline: readonly Operator[];
  /** Later operators, which run in the calling thread. */
  readonly rest: readonly Operator[];
  /** The work of the tasks, or the reason why the calling thread reads. */
  readonly work: RowsWork | string;
}

/** `divides`: the rows go into an exchange. `known`: the work of the tasks, if it was made already. */
export async function planRows(
  plan: LogicalPlan,
  {
    divides = false,
    known,
    ...reading
  }: Omit<RowsReading, 'readHere'> & { readonly divides?: boolean; readonly known?: RowsWork | undefined },
  ctx: ExecutionContext,
): Promise<RowsPlan> {
  const { source, pipeline, rest } = splitSource(plan, { ...reading, readHere: noReader }, divides);
  const { columns, needs } = sourceRequest(rest.reduce(andThen, fromSource(source)));
  return { pipeline, rest, work: known ?? (await source.work(ctx, columns, needs)) };
}

const noReader: ReadSplit = () => {
  throw new Error('a plan that is explained reads no rows');
};

/** `divides`: the tasks divide the rows for an exchange. */
function splitSource(plan: LogicalPlan, reading: RowsReading, divides = false) {
  const operators = operatorsOf(plan);
  const first = operators.findIndex((operator) => !runsBySplit(operator));
  const pipeline = first < 0 ? operators : operators.slice(0, first);
  const rest = operators.slice(pipeline.length);
  const source = new SplitSource(rootSource(plan), { pipeline, rest, divides }, reading);
  return { source, pipeline, rest };
}

/** True if the first operator other than a limit runs row by row: its errors may name lines of a file. */
function namesLines(operators: readonly Operator[]): boolean {
  const first = operators.find((operator) => !(operator instanceof Limit));
  return first !== undefined && first.takesAllRows !== true;
}

/** The operators after a source. */
interface SplitChain {
  /** Run in tasks. */
  readonly pipeline: readonly Operator[];
  /** Run in the calling thread. */
  readonly rest: readonly Operator[];
  readonly divides: boolean;
}

/** What is asked of an exchange. */
interface Asked {
  readonly ctx: ExecutionContext;
  readonly columns: readonly string[] | undefined;
  readonly reading: RowsReading;
}

/** A source whose rows come from tasks, in the order and batches of its splits. */
class SplitSource implements Source {
  readonly name: string;
  readonly phase: string | undefined;
  readonly replayable: boolean;
  readonly #source: Source;
  readonly #chain: SplitChain;
  readonly #reading: RowsReading;

  constructor(source: Source, chain: SplitChain, reading: RowsReading) {
    [this.#source, this.#chain, this.#reading] = [source, chain, reading];
    [this.name, this.phase, this.replayable] = [source.name, source.phase, source.replayable];
  }

  describe(): JsonObject {
    return this.#source.describe();
  }

  schema(needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
    return schemaOf(this.#plan, needs, signal);
  }

  get #operators(): readonly Operator[] {
    return this.#chain.pipeline;
  }

  get #plan(): LogicalPlan {
    return this.#operators.reduce(andThen, fromSource(this.#source));
  }

  async execute(
    ctx: ExecutionContext,
    columns?: readonly string[],
    needs?: ValueNeeds,
  ): Promise<BatchStream> {
    const room = (this.#reading.room ?? new ExchangeRoom()).lease();
    const work = await this.work(ctx, columns, needs, { ...this.#reading, room });
    if (typeof work === 'string') return executePlan(this.#plan, ctx, columns, needs);
    if (work.taken.kind === 'exchange') room.keepFor(work.taken.exchange.stages());
    return batchStream(work.schema, batchesOf(work, room, ctx));
  }

  /** The work of the tasks; or, with nothing read, the reason why the calling thread reads. */
  async work(
    ctx: ExecutionContext,
    columns: readonly string[] | undefined,
    needs: ValueNeeds | undefined,
    reading = this.#reading,
  ): Promise<RowsWork | string> {
    const device = ctx.executor.devices.find(({ info }) => info.kind === 'cpu')?.info;
    if (device === undefined) return 'the session has no threads';
    const request = sourceRequest(this.#plan, columns, needs);
    if (request.needs?.takesFaults) return 'the consumer handles values that cannot be read';
    const asked = { ctx, columns: request.columns, reading };
    const source = this.#source;
    if (source instanceof Union && this.#chain.divides && request.columns?.length !== 0)
      return this.#united(source, asked);
    const work =
      source instanceof Wide
        ? await this.#exchanged(source, asked)
        : source instanceof Joined
          ? await this.#joined(source, asked)
          : await this.#split(ctx, request);
    if (typeof work === 'string') return work;
    const operators = [...work.operators, ...this.#operators];
    const schema = this.#operators.reduce((own, operator) => operator.outputSchema(own), work.schema);
    return { ...work, schema, operators };
  }

  async #split(
    ctx: ExecutionContext,
    { columns, needs }: ReturnType<typeof sourceRequest>,
  ): Promise<RowsWork | string> {
    const { readHere, splitBytes = SPLIT_BYTES } = this.#reading;
    const device = hostInfo(ctx);
    const found = await this.#source.splits?.(ctx, columns, needs, splitBytes);
    if (found === undefined) return 'the rows come in one stream';
    const { schema, splits, mostValues, whenRead } = found;
    if (splits.reduce((sum, { bytes }) => sum + bytes, 0) <= splitBytes)
      return `the data are at most ${formatBytes(splitBytes)}, too few to share`;
    const ranges = splits.some(({ range }) => range !== undefined);
    // Errors of an operator in the calling thread name lines, and a range counts lines from its own start.
    if (ranges && namesLines(this.#chain.rest))
      return 'errors of later operators name lines of the file, which parts of it do not know';
    if (
      !ranges &&
      this.#operators.length === 0 &&
      !this.#chain.divides &&
      device.parallelism < FEWEST_THREADS
    )
      return `fewer than ${FEWEST_THREADS} threads would be no faster`;
    const groups = groupSplits(splits, splitBytes, SPLIT_ROWS);
    const taken = { kind: 'splits', groups, readHere, ...(mostValues && { mostValues }), whenRead } as const;
    return { source: schema, schema, operators: [], device, taken };
  }

  /** The rows of an exchange; tasks first divide the rows of its input. */
  async #exchanged(wide: Wide, { ctx, columns, reading }: Asked): Promise<RowsWork> {
    const { plan, by } = await wide.rowsToExchange(columns, ctx.signal);
    const input = await inputOf(await optimize(plan, {}, ctx.signal), reading, ctx);
    const { after, parts } = wide.operator;
    return {
      source: input.schema,
      schema: after.reduce((own, operator) => operator.outputSchema(own), input.schema),
      operators: [],
      device: input.device,
      taken: { kind: 'exchange', exchange: new ExchangedRows(input, { by, parts, after }) },
    };
  }

  async #joined(joined: Joined, { ctx, columns, reading }: Asked): Promise<RowsWork> {
    const { inputs, params } = await joined.prepared(columns, ctx.signal);
    const [left, right] = await Promise.all(
      inputs.map(async (plan) => inputOf(await optimize(plan, {}, ctx.signal), reading, ctx)),
    );
    const kept = { ...params, ...(columns && { keeps: columns }) };
    const schema = new JoinRows(kept).outputSchema(left.schema, right.schema);
    const exchange = new JoinedExchange(kept, { left, right });
    return exchangeWork(schema, left.device, exchange);
  }

  /** The inputs of a union, with the same columns in the same order; their tasks run the operators. */
  async #united(given: Union, { ctx, columns, reading }: Asked): Promise<RowsWork> {
    const { union, schema: all } = await given.opened(undefined, ctx.signal);
    const names = all.fields.map(({ name }) => name).filter((name) => columns?.includes(name) ?? true);
    const operators = [selectColumns(names), ...this.#operators];
    const inputs = await Promise.all(
      union.inputs.map(async (plan) =>
        inputOf(await optimize(operators.reduce(andThen, plan), {}, ctx.signal), reading, ctx),
      ),
    );
    const schema = this.#operators.reduce((own, operator) => operator.outputSchema(own), all.select(names));
    const exchange = new UnitedRows(schema, inputs);
    return exchangeWork(schema, inputs[0].device, exchange);
  }
}

/** An optimized plan as the input of an exchange. */
async function inputOf(
  plan: LogicalPlan,
  reading: RowsReading,
  ctx: ExecutionContext,
): Promise<ExchangeInput> {
  const whole = withExchanges(plan);
  const { source, rest } = splitSource(whole, reading, true);
  const work =
    rest.length > 0
      ? `${rest[0].name} runs in the calling thread`
      : await source.work(ctx, undefined, undefined, reading);
  return {
    plan: whole,
    schema: await schemaOf(plan, undefined, ctx.signal),
    device: hostInfo(ctx),
    room: reading.room ?? new ExchangeRoom(),
    sizes: new PartSizes(reading.splitBytes),
    work: typeof work === 'string' ? { stream: (held) => executePlan(inThreads(plan, reading), held) } : work,
  };
}

function hostInfo(ctx: ExecutionContext): RowsWork['device'] {
  return hostDevice(ctx.executor).info;
}

async function* batchesOf(
  work: RowsWork,
  room: ExchangeRoom,
  ctx: ExecutionContext,
): AsyncGenerator<RecordBatch> {
  const holdings = new Holdings(ctx);
  try {
    yield* new RowTasks(await afterExchange(work, holdings.ctx), holdings.ctx).batches();
  } finally {
    await holdings.close();
    room.close();
  }
}

/**
 * Replaces each sort in a plan by an exchange of rows by ranges of the sort keys, so that tasks sort parts of
 * the rows. Groupings and joins are exchanges already.
 */
export function withExchanges(plan: LogicalPlan): LogicalPlan {
  return operatorsOf(plan).reduce(
    (input, operator) =>
      operator instanceof SortRows
        ? fromSource(new Wide(new OrderRows(operator.keys), [input]))
        : andThen(input, operator),
    fromSource(rootSource(plan)),
  );
}
