import { counted, formatBytes } from '../../engine/format.ts';
import type { Json } from '../../engine/json.ts';
import {
  andThen,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  sourceRequest,
} from '../../engine/stream/logical-plan.ts';
import type { Description, Operator, Source, SourceParts } from '../../engine/stream/operator.ts';
import { Filter } from '../../operators/dataflow/filter.ts';
import { Joined } from '../../operators/dataflow/join/joined.ts';
import { optimize } from '../../operators/dataflow/optimize.ts';
import { Union } from '../../operators/dataflow/union.ts';
import { UnitedRows } from '../../operators/exchange/exchanged-rows.ts';
import { Wide } from '../../operators/exchange/wide-operators.ts';
import { planRows, withExchanges } from '../../operators/pipeline/read-in-threads.ts';
import type { ExchangedPlan, RowsWork } from '../../operators/pipeline/task-input.ts';
import { exchangeRoomOf } from '../run-rows.ts';
import type { RunOptions, RunSession } from '../run-session.ts';

/** The plans of rows as text: as composed, as optimized, and as executed. */
export async function explainRows(
  plan: LogicalPlan,
  session: RunSession,
  options: Pick<RunOptions, 'signal'>,
): Promise<string> {
  const ctx = session.context(options);
  const optimized = await optimizedPlan(plan, ctx.signal);
  return [
    'Logical plan',
    ...treeOf(plan),
    '',
    'Optimized plan',
    ...treeOf(optimized),
    '',
    'Physical plan',
    ...(await physicalLines(withExchanges(optimized), session, ctx)),
    '  result: batches in the order of rows',
  ].join('\n');
}

/**
 * The optimized plan. The inputs of unions and joins, which normally are optimized only when they are read,
 * are optimized here, too.
 */
async function optimizedPlan(plan: LogicalPlan, signal: AbortSignal): Promise<LogicalPlan> {
  const optimized = await optimize(plan, {}, signal);
  const source = rootSource(optimized);
  const over = (own: Source) => operatorsOf(optimized).reduce(andThen, fromSource(own));
  if (source instanceof Joined) {
    const prepared = await source.prepared(sourceRequest(optimized).columns, signal);
    const [left, right] = prepared.inputs;
    return over(prepared.of([await optimizedPlan(left, signal), await optimizedPlan(right, signal)]));
  }
  if (!(source instanceof Union || source instanceof Wide)) return optimized;
  return over(source.of(await Promise.all(source.inputs.map((input) => optimizedPlan(input, signal)))));
}

/** The plans whose rows a source joins or concatenates. */
function inputsOf(source: Source): readonly LogicalPlan[] {
  return source instanceof Union || source instanceof Joined || source instanceof Wide ? source.inputs : [];
}

/** The operators from the result to the source, one a line, each indented by two more spaces. */
function treeOf(plan: LogicalPlan, indent = '  '): string[] {
  const operators = operatorsOf(plan).toReversed();
  const source = rootSource(plan);
  const deeper = indent + '  '.repeat(operators.length);
  const { columns } = sourceRequest(plan);
  const inputs = inputsOf(source).flatMap((input) => treeOf(input, `${deeper}  `));
  const read = columns === undefined ? '' : `; columns: ${columns.join(', ')}`;
  return [
    ...operators.map((operator, depth) => indent + '  '.repeat(depth) + lineOf(operator)),
    `${deeper}${lineOf(source)}${read}`,
    ...inputs,
  ];
}

function lineOf(described: Description): string {
  const facts = Object.entries(described.describe()).map(([name, value]) => `${name}: ${textOf(value)}`);
  return [described.name, facts.join('; ')].filter((text) => text !== '').join(' ');
}

function textOf(value: Json | undefined): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value);
}

async function physicalLines(
  plan: LogicalPlan,
  session: RunSession,
  ctx: ReturnType<RunSession['context']>,
  {
    indent = '  ',
    divides = false,
    known,
  }: { readonly indent?: string; readonly divides?: boolean; readonly known?: RowsWork | undefined } = {},
): Promise<string[]> {
  const source = rootSource(plan);
  const inOrder = source instanceof Union && !divides;
  const planned = inOrder
    ? undefined
    : await planRows(
        plan,
        { splitBytes: session.splitBytes, room: exchangeRoomOf(session), divides, known },
        ctx,
      );
  const lines: string[] = [];
  for (const [i, input] of (await readyInputs(plan, planned?.work, ctx.signal)).entries())
    lines.push(
      `${indent}${inputName(source, i)}:`,
      ...(await physicalLines(input.plan, session, ctx, {
        indent: `${indent}  `,
        divides: !inOrder,
        known: input.work !== undefined && 'source' in input.work ? input.work : undefined,
      })),
    );
  if (planned === undefined) {
    const above = operatorsOf(plan).map(({ name }) => name);
    lines.push(
      `${indent}in the calling thread: ${[source.name, ...above].join(' > ')}, since inputs follow each other`,
    );
    return lines;
  }
  const { pipeline, rest, work } = planned;
  const stages = [source.name, ...pipeline.map(({ name }) => name)].join(' > ');
  const own = [
    ...(await skippedLines(plan)),
    ...(typeof work === 'string'
      ? [`in the calling thread: ${stages}, since ${work}`]
      : workLines(work, stages)),
    ...rest.map(
      (operator, i) =>
        `in the calling thread: ${operator.name}, since ${reasonOf(operator, rest[i - 1] ?? source)}`,
    ),
  ];
  return [...lines, ...own.map((line) => indent + line)];
}

/** The inputs of the source as executed. An exchange has the work of its inputs, which is not made again. */
async function readyInputs(
  plan: LogicalPlan,
  work: RowsWork | string | undefined,
  signal: AbortSignal,
): Promise<readonly (Pick<ExchangedPlan, 'plan'> & Partial<ExchangedPlan>)[]> {
  if (typeof work === 'object' && work.taken.kind === 'exchange') return work.taken.exchange.inputs;
  const source = rootSource(plan);
  const { columns } = sourceRequest(plan);
  const ready = async (input: LogicalPlan) => ({ plan: withExchanges(await optimize(input, {}, signal)) });
  if (source instanceof Wide) return [await ready((await source.rowsToExchange(columns, signal)).plan)];
  const { inputs } =
    source instanceof Joined ? await source.prepared(columns, signal) : { inputs: inputsOf(source) };
  return Promise.all(inputs.map(ready));
}

function workLines({ taken, device }: RowsWork, stages: string): string[] {
  const threads = counted(device.parallelism, 'thread');
  if (taken.kind === 'exchange' && taken.exchange instanceof UnitedRows)
    return [`${taken.exchange.describe()}: union`];
  if (taken.kind === 'exchange')
    return [taken.exchange.describe(), `tasks over the parts, by ${threads}: ${stages}`];
  if (taken.kind === 'units') throw new Error('units are there only when a plan is run');
  const splits = taken.groups.length;
  const bytes = taken.groups.flat().reduce((sum, split) => sum + split.bytes, 0);
  return [`${counted(splits, 'task')} of about ${formatBytes(bytes / splits)}, by ${threads}: ${stages}`];
}

function inputName(source: Source, i: number): string {
  if (source instanceof Joined) return `${i === 0 ? 'left' : 'right'} input of the join`;
  return source instanceof Wide ? `input of ${source.name}` : `input ${i + 1} of the ${source.name}`;
}

function reasonOf(
  { name, portable, takesAllRows }: Pick<Operator, 'name' | 'portable' | 'takesAllRows'>,
  before: Description,
): string {
  if (name === 'limit') return 'it counts rows in their order; once it has enough, no more are read';
  if (takesAllRows) return 'it takes the rows of all splits';
  if (portable !== undefined) return `it follows ${before.name}`;
  return name === 'map-batches'
    ? 'a closure cannot go to another thread: name its module'
    : 'it cannot go to another thread';
}

/**
 * For a plan with a filter: lines that report the number of parts of the source (folders, row groups, pages)
 * that must be read, or the reason why all must be.
 */
async function skippedLines(plan: LogicalPlan): Promise<string[]> {
  const source = rootSource(plan);
  const operators = operatorsOf(plan);
  const filter = operators.findIndex((operator) => operator instanceof Filter);
  const parts = filter < 0 ? undefined : await source.parts?.(sourceRequest(plan).columns);
  if (parts === undefined) return [];
  const folders = parts.filter(({ by }) => by === 'names').map(folderLine);
  const stored = parts.filter(({ by }) => by === 'statistics');
  if (stored.length === 0) return folders;
  const before = filter > 0 ? operators[filter - 1].name : undefined;
  return [...folders, statisticsLine(stored, before, 'within' in source.describe())];
}

function folderLine({ unit, read, all }: SourceParts): string {
  return read < all
    ? `reads ${read} of ${counted(all, unit)}: names exclude the others`
    : `reads ${all === 1 ? `the only ${unit}` : `all ${counted(all, unit)}`}: names exclude none`;
}

/**
 * The line about row groups and pages. `before`: the operator before the filter, if any, which prevents
 * skipping; `isBound`: true if the filter limits single columns to ranges.
 */
function statisticsLine(parts: readonly SourceParts[], before: string | undefined, isBound: boolean): string {
  if (parts.some(({ read, all }) => read < all)) {
    const read = parts.map(({ unit, read, all }) => `${read} of ${counted(all, unit)}`).join(', ');
    return `reads ${read}: statistics in the file exclude the others`;
  }
  const [{ unit, all }] = parts;
  const reason =
    before !== undefined
      ? `the filter runs after ${before}`
      : isBound
        ? 'statistics in the file exclude none'
        : 'the filter compares no single column with constants';
  return `reads ${all === 1 ? `the only ${unit}` : `all ${counted(all, unit)}`}: ${reason}`;
}
