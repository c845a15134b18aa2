import type { Schema } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { type Division, RowTasks } from '../pipeline/row-tasks.ts';
import { begun, type RowsWork } from '../pipeline/rows-work.ts';
import { isBinary } from '../pipeline/run-chain.ts';
import { keepPartitions, type PartsHome, type RowUnit, unitsOfStream } from '../pipeline/row-unit.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import { DividedParts } from './divided-parts.ts';
import { describeExchange } from './exchange.ts';
import type { ExchangeRoom } from './exchange-room.ts';
import type { PartSizes } from './part-sizes.ts';
import { taskBytes } from './row-stages.ts';

/** Number of units (rows for one task) that are read from a stream before the number of parts is chosen. */
const FIRST_UNITS = 8;

/** Prefix of the names of exchanges in measures. */
export const EXCHANGE = 'exchange ';

/** Name of the measure of bytes that exchanges wrote to files. */
export const EXCHANGE_IN_FILES = 'exchange in files';

/** The input of an exchange: the rows of a plan. */
export interface ExchangeInput {
  readonly schema: Schema;
  readonly device: RowsWork['device'];
  readonly room: ExchangeRoom;
  readonly sizes: PartSizes;
  /** Rows that tasks read, or a stream that the calling thread reads. */
  readonly work: RowsWork | { readonly stream: (ctx: ExecutionContext) => Promise<BatchStream> };
}

/** An input whose own exchanges have run, and whose first rows were read if it is a stream. */
export interface OpenInput {
  readonly work: RowsWork;
  /** Bytes of all rows in memory; undefined if not known. */
  readonly bytes: number | undefined;
  /** All rows, as inputs of tasks, if the stream has ended. */
  readonly units?: readonly RowUnit[];
}

export function homeOf({ device, room }: ExchangeInput): PartsHome {
  return { place: device.place, room };
}

/** Estimated bytes of an input's rows in memory, before rows are read; undefined if not known. */
export function estimatedBytes(input: Pick<ExchangeInput, 'work' | 'schema'>): number | undefined {
  return taskBytes(input)?.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Estimated bytes of the rows that the work's operators return. Undefined after a join, which may return many
 * times its input.
 */
export function bytesAfter({ bytes, operators }: RowsWork): number | undefined {
  return operators.some(isBinary) ? undefined : bytes;
}

/** Runs the exchanges that the input depends on, and reads the first rows of a stream. */
export async function opened(input: ExchangeInput, ctx: ExecutionContext): Promise<OpenInput> {
  const { schema, device, work } = input;
  if (!('stream' in work)) {
    const ready = await begun(work, ctx);
    if (ready.taken.kind === 'splits') return { work: ready, bytes: estimatedBytes(input) };
    return { work: ready, bytes: bytesAfter(ready) };
  }
  const units = unitsOfStream(
    schema,
    await work.stream(ctx),
    { ...homeOf(input), bytes: input.sizes.ofStream },
    ctx,
  );
  const workOf = (all: AsyncIterable<RowUnit>): RowsWork => ({
    source: schema,
    schema,
    operators: [],
    device,
    taken: { kind: 'units', units: all },
  });
  const first: RowUnit[] = [];
  for (let next = await units.next(); !next.done; next = await units.next()) {
    first.push(next.value);
    if (first.length === FIRST_UNITS) return { work: workOf(followed(first, units)), bytes: undefined };
  }
  return { work: workOf(eachOf(first)), bytes: bytesOf(first), units: first };
}

/**
 * Runs the tasks of `work`, which divide their rows among parts, and keeps the results in memory or in files.
 */
export async function dividedRows(
  work: RowsWork,
  division: Division,
  home: PartsHome,
  ctx: ExecutionContext,
): Promise<DividedParts> {
  const all = new DividedParts(division.parts);
  const planned = estimatedBytes({ work, schema: work.schema });
  const name = [
    EXCHANGE + describeExchange(division.by),
    ...(planned === undefined ? [] : [`planned about ${formatBytes(planned)} of input`]),
  ].join(', ');
  for await (const { refs, divided } of new RowTasks(work, ctx).divided(division)) {
    const { bytes, firsts } = divided;
    const partitions = firsts.map((first, number) => {
      const own = bytes.slice(first, firsts[number + 1]).filter((part) => part > 0);
      return { ref: refs[number], bytes: own.reduce((sum, part) => sum + part, 0), left: own.length };
    });
    const kept = await keepPartitions(partitions, home, ctx);
    const bytesDown = bytesOf(partitions);
    ctx.metrics.add(name, { rows: divided.rows, bytesDown });
    if (kept.some(({ spilled }) => spilled)) ctx.metrics.add(EXCHANGE_IN_FILES, { bytesDown });
    all.add(kept, divided);
  }
  return all;
}

export function bytesOf(parts: readonly { readonly bytes: number }[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function* followed(first: readonly RowUnit[], units: AsyncIterable<RowUnit>): AsyncGenerator<RowUnit> {
  yield* first;
  yield* units;
}
