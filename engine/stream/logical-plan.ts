import type { Schema } from 'apache-arrow';
import { throwIfAborted } from '../errors.ts';
import type { Description, Operator, Sink, Source, ValueNeeds } from './operator.ts';
import { type ExecutionContext, followed } from '../run/context.ts';
import { batchStream, type BatchStream } from './stream.ts';
import { Patience } from '../waits.ts';

/**
 * A source, or an operator over a plan. It describes the result, not the devices or steps that compute it.
 * Immutable.
 */
export type LogicalPlan =
  | { readonly kind: 'source'; readonly source: Source }
  | { readonly kind: 'operator'; readonly operator: Operator; readonly input: LogicalPlan };

export function fromSource(source: Source): LogicalPlan {
  return { kind: 'source', source };
}

export function andThen(input: LogicalPlan, operator: Operator): LogicalPlan {
  return { kind: 'operator', operator, input };
}

export function rootSource(plan: LogicalPlan): Source {
  let root = plan;
  while (root.kind === 'operator') root = root.input;
  return root.source;
}

/** The operators in the order in which rows pass them. */
export function operatorsOf(plan: LogicalPlan): readonly Operator[] {
  const operators: Operator[] = [];
  for (let part = plan; part.kind === 'operator'; part = part.input) operators.push(part.operator);
  return operators.toReversed();
}

/** Schemas of sources that have been opened. */
const schemas = new WeakMap<Source, Schema>();

/** The columns of the plan's result if its source has been opened already; else undefined. */
export function knownSchema(plan: LogicalPlan): Schema | undefined {
  const opened = schemas.get(rootSource(plan));
  try {
    return opened && schemaAfter(opened, operatorsOf(plan));
  } catch {
    // A column is missing; the run reports it.
    return undefined;
  }
}

function schemaAfter(schema: Schema, operators: readonly Operator[]): Schema {
  return operators.reduce((input, operator) => operator.outputSchema(input), schema);
}

/**
 * Returns the columns of the plan's result. Opens the source's metadata, but reads no rows. `signal`: of the
 * run, which it cancels. A run opens each source once, however often its plans ask for the columns.
 */
export async function schemaOf(plan: LogicalPlan, needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
  const [source, operators] = [rootSource(plan), operatorsOf(plan)];
  const needed = operators.reduceRight((above, operator) => needsBelow(operator, above), needs);
  const schema = await openedSchema(source, needed, signal);
  schemas.set(source, schema);
  return schemaAfter(schema, operators);
}

/** The schemas that runs have asked their sources for, by the run's signal, the source and the needs. */
const asked = new WeakMap<AbortSignal, WeakMap<Source, Map<string | undefined, Promise<Schema>>>>();

function openedSchema(source: Source, needs?: ValueNeeds, signal?: AbortSignal): Promise<Schema> {
  if (signal === undefined) return source.schema(needs);
  const ofRun = asked.get(signal) ?? new WeakMap<Source, Map<string | undefined, Promise<Schema>>>();
  const ofSource = ofRun.get(source) ?? new Map<string | undefined, Promise<Schema>>();
  asked.set(signal, ofRun.set(source, ofSource));
  const key = JSON.stringify(needs);
  const opened = ofSource.get(key) ?? patientSchema(source, needs, signal);
  ofSource.set(key, opened);
  // After a failure the next call opens the source again.
  opened.catch(() => ofSource.delete(key));
  return opened;
}

async function patientSchema(source: Source, needs: ValueNeeds | undefined, signal: AbortSignal) {
  using patience = new Patience(signal, source.phase ?? source.name);
  return await patience.waitFor(() => source.schema(needs, signal));
}

const noNeeds: ValueNeeds = { numbers: [], takesFaults: false };

function needsBelow(operator: Operator, needs: ValueNeeds | undefined): ValueNeeds | undefined {
  const own = operator.needs;
  if (needs === undefined || operator.passesNeeds === undefined) return own;
  const passes = (numbers: readonly string[]) =>
    typeof operator.passesNeeds === 'function'
      ? operator.passesNeeds({ ...needs, numbers })
      : operator.passesNeeds === true;
  const texts = [...(own?.texts ?? []), ...(needs.texts ?? []).filter((name) => passes([name]))];
  const { numbers, takesFaults } = passes(needs.numbers) ? needs : (own ?? noNeeds);
  // The operator may leave out rows or rename columns, so the consumer does not take the ids of all rows.
  return takesFaults || texts.length > 0 ? { numbers, takesFaults, texts } : undefined;
}

/**
 * The columns and value needs that the plan passes to its source, for a consumer of `columns` of the result
 * (default: all).
 */
export function sourceRequest(
  plan: LogicalPlan,
  columns?: readonly string[],
  needs?: ValueNeeds,
): { readonly columns: readonly string[] | undefined; readonly needs: ValueNeeds | undefined } {
  if (plan.kind === 'source') return { columns, needs };
  const { operator, input } = plan;
  return sourceRequest(input, operator.requiredColumns(columns), needsBelow(operator, needs));
}

/**
 * Starts the plan and returns the stream of its result. `columns`: the columns that the consumer needs; the
 * source may skip others.
 */
export async function executePlan(
  plan: LogicalPlan,
  ctx: ExecutionContext,
  columns?: readonly string[],
  needs?: ValueNeeds,
): Promise<BatchStream> {
  if (plan.kind === 'source')
    return metered(plan.source, await openSource(plan.source, ctx, columns, needs), ctx, { upstreamMs: 0 });
  const input = await executePlan(
    plan.input,
    ctx,
    plan.operator.requiredColumns(columns),
    needsBelow(plan.operator, needs),
  );
  const clock = { upstreamMs: 0 };
  const timedInput = batchStream(input.schema, timedPulls(input, clock));
  return metered(plan.operator, plan.operator.execute(timedInput, ctx), ctx, clock);
}

async function openSource(
  source: Source,
  ctx: ExecutionContext,
  columns?: readonly string[],
  needs?: ValueNeeds,
): Promise<BatchStream> {
  const phase = source.phase ?? source.name;
  using _ = ctx.metrics.begin(phase);
  using patience = new Patience(ctx.signal, phase);
  return abandonable(await patience.waitFor(() => source.execute(ctx, columns, needs)), phase, ctx);
}

export function runInto<Result>(
  plan: LogicalPlan,
  sink: Sink<Result>,
  ctx: ExecutionContext,
): Promise<Result> {
  return followed(ctx, async () => {
    throwIfAborted(ctx.signal, sink.name);
    using _ = ctx.metrics.begin(sink.phase ?? sink.name);
    return await sink.consume(await executePlan(plan, ctx, sink.requiredColumns(), sink.needs), ctx);
  });
}

/**
 * Wraps a source's stream so that a cancel ends the wait for its next batch, even if the source never
 * responds.
 */
function abandonable(stream: BatchStream, phase: string, ctx: ExecutionContext): BatchStream {
  async function* pull() {
    using patience = new Patience(ctx.signal, phase);
    const iterator = stream[Symbol.asyncIterator]();
    let hangs = false;
    try {
      for (;;) {
        hangs = true;
        const next = await patience.waitFor(() => iterator.next().finally(() => (hangs = false)));
        if (next.done) return;
        yield next.value;
      }
    } finally {
      const end = iterator.return?.();
      end?.catch(() => {});
      if (!hangs) await patience.outlast(end);
    }
  }
  return batchStream(stream.schema, pull());
}

interface PullClock {
  upstreamMs: number;
}

/** Sums the time that the operator waits for its input, to subtract it from the operator's own time. */
async function* timedPulls(input: BatchStream, clock: PullClock) {
  const iterator = input[Symbol.asyncIterator]();
  try {
    for (;;) {
      const start = performance.now();
      const next = await iterator.next();
      clock.upstreamMs += performance.now() - start;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}

function metered(
  { name, phase = name }: Description,
  stream: BatchStream,
  ctx: ExecutionContext,
  clock: PullClock,
): BatchStream {
  async function* pull() {
    const iterator = stream[Symbol.asyncIterator]();
    try {
      for (;;) {
        throwIfAborted(ctx.signal, name);
        const start = performance.now();
        const before = clock.upstreamMs;
        const next = await pulled(iterator, phase, ctx);
        const own = performance.now() - start - (clock.upstreamMs - before);
        ctx.metrics.add(
          name,
          { rows: next.done ? 0 : next.value.numRows, milliseconds: own },
          next.done ? 0 : 1,
        );
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  return batchStream(stream.schema, pull());
}

/** Pulls the next batch, and counts the time as a span of the phase. Pulls inside it have their own spans. */
async function pulled<Batch>(
  iterator: AsyncIterator<Batch>,
  phase: string,
  ctx: ExecutionContext,
): Promise<IteratorResult<Batch>> {
  using _ = ctx.metrics.begin(phase);
  return await iterator.next();
}
