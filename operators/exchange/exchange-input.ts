import type { Schema } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { type Division, RowTasks } from '../pipeline/row-tasks.ts';
import { begun, type RowsWork } from '../pipeline/rows-work.ts';
import { isBinary } from '../pipeline/run-chain.ts';
import {
  keepParts,
  type PartsHome,
  type RowPart,
  type RowUnit,
  unitsOfStream,
} from '../pipeline/row-unit.ts';
import type { SplitGroup } from '../pipeline/split-order.ts';
import { eachOf } from '../pipeline/split-tasks.ts';
import { describeExchange } from './exchange.ts';
import type { ExchangeRoom } from './exchange-room.ts';
import type { PartSizes } from './part-sizes.ts';
import { mostGroups } from './most-groups.ts';
import { rowBytes } from './row-bytes.ts';

/** Bytes in memory for each that is stored, where the number of rows is not known. */
const UNPACKED = 4;

/** Units of a stream that are read before the number of parts is chosen. */
const FIRST_UNITS = 8;

/** The beginning of the names of exchanges, among measures. */
export const EXCHANGE = 'exchange ';

/** The name of the bytes of exchanges that went to files, among measures. */
export const EXCHANGE_IN_FILES = 'exchange in files';

/** The rows of a plan that go into an exchange. */
export interface ExchangeInput {
  readonly schema: Schema;
  readonly device: RowsWork['device'];
  readonly room: ExchangeRoom;
  readonly sizes: PartSizes;
  /** The work of tasks, or a stream in the calling thread. */
  readonly work: RowsWork | { readonly stream: (ctx: ExecutionContext) => Promise<BatchStream> };
}

/** An input whose first rows are there. */
export interface OpenInput {
  readonly work: RowsWork;
  /** Bytes of all rows in memory, as far as they are known. */
  readonly bytes: number | undefined;
  /** The units, where they are all there. */
  readonly units?: readonly RowUnit[];
}

export function homeOf({ device, room }: ExchangeInput): PartsHome {
  return { place: device.place, room };
}

/** Bytes as text, with the place where they are kept. */
export function whereKept(bytes: number, { room }: ExchangeInput): string {
  const about = `about ${formatBytes(bytes)}`;
  if (bytes <= room.bytes) return `${about} in memory`;
  return `${about}: ${formatBytes(room.bytes)} in memory, the rest in files`;
}

/** Bytes of an input's rows in memory, as far as they are known before rows are read. */
export function estimatedBytes({ work, schema }: Pick<ExchangeInput, 'work' | 'schema'>): number | undefined {
  if ('stream' in work || work.taken.kind !== 'splits') return undefined;
  const each = rowBytes(schema);
  const most = mostGroups(work) * each;
  const bytesOfTask = (group: SplitGroup) =>
    group.reduce((sum, { rows, bytes }) => sum + (rows === undefined ? UNPACKED * bytes : rows * each), 0);
  return work.taken.groups.reduce((sum, group) => sum + Math.min(most, bytesOfTask(group)), 0);
}

/** About the bytes of rows after the operators, as far as they are known: a join may give many times its input. */
export function bytesAfter({ bytes, operators }: RowsWork): number | undefined {
  return operators.some(isBinary) ? undefined : bytes;
}

/** Runs the exchanges below, and reads the first rows of a stream. */
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

/** Divides all rows; gives the partitions of each part in the order of the rows. */
export async function dividedRows(
  work: RowsWork,
  division: Division,
  home: PartsHome,
  ctx: ExecutionContext,
): Promise<RowPart[][]> {
  const byPart: RowPart[][] = Array.from({ length: division.parts }, () => []);
  const planned = estimatedBytes({ work, schema: work.schema });
  const name = [
    EXCHANGE + describeExchange(division.by),
    ...(planned === undefined ? [] : [`planned about ${formatBytes(planned)} of input`]),
  ].join(', ');
  for await (const { refs, sizes } of new RowTasks(work, ctx).divided(division)) {
    const found = refs.flatMap((ref, part) => {
      const { rows, bytes } = sizes[part];
      return rows > 0 ? [{ ref, part, bytes }] : [];
    });
    const kept = await keepParts(found, home, ctx);
    const bytesDown = bytesOf(found);
    ctx.metrics.add(name, { rows: sizes.reduce((sum, { rows }) => sum + rows, 0), bytesDown });
    if (kept.some(({ spilled }) => spilled)) ctx.metrics.add(EXCHANGE_IN_FILES, { bytesDown });
    kept.forEach((own, i) => byPart[found[i].part].push(own));
  }
  return byPart;
}

export function bytesOf(parts: readonly { readonly bytes: number }[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function* followed(first: readonly RowUnit[], units: AsyncIterable<RowUnit>): AsyncGenerator<RowUnit> {
  yield* first;
  yield* units;
}
