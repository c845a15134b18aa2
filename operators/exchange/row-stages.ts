import { formatBytes } from '../../engine/format.ts';
import type { RowsWork } from '../pipeline/rows-work.ts';
import type { SplitGroup } from '../pipeline/split-order.ts';
import { mostPartitions } from './exchange.ts';
import type { RowStage } from './exchange-room.ts';
import { mostGroups } from './most-groups.ts';
import type { PartSizes } from './part-sizes.ts';
import { rowBytes } from './row-bytes.ts';

/** Estimated bytes in memory for each byte in a file, if the file does not contain the number of rows. */
const UNPACKED = 4;

/**
 * Bytes in the calling thread for each partition that a task made: its entries, and its position in a file.
 */
const ENTRY_BYTES = 3 << 10;

/** Bytes for each part of a task: its size, its end and its checksum. */
const PART_BYTES = 32;

/** Input rows of an exchange, for estimating its stages. */
interface InputRows {
  readonly schema: Parameters<typeof rowBytes>[0];
  readonly sizes: PartSizes;
  readonly work: RowsWork | { readonly stream: unknown };
}

/**
 * Estimated bytes in memory of the rows of each task. Undefined if they are not known before rows are read.
 */
export function taskBytes({ schema, work }: Pick<InputRows, 'schema' | 'work'>): number[] | undefined {
  if ('stream' in work || work.taken.kind !== 'splits') return undefined;
  const each = rowBytes(schema);
  const most = mostGroups(work) * each;
  const bytesOfTask = (group: SplitGroup) =>
    group.reduce((sum, { rows, bytes }) => sum + (rows === undefined ? UNPACKED * bytes : rows * each), 0);
  return work.taken.groups.map((group) => Math.min(most, bytesOfTask(group)));
}

/** Stages of the exchanges that the input depends on. */
export function belowOf({ work }: Pick<InputRows, 'work'>): readonly RowStage[] {
  return 'stream' in work || work.taken.kind !== 'exchange' ? [] : work.taken.exchange.stages();
}

/**
 * Estimates the memory for dividing an input's rows among parts, as stages: first the stages of the exchanges
 * that the input depends on, then its own tasks. In memory at a time: in each thread a task's input rows or a
 * table of them, the rows by part, a copy of these in one array, and the previous task's garbage; and the
 * results of two more tasks that have ended.
 */
export function dividingStages(
  by: string,
  parts: number,
  { schema, sizes, work }: InputRows,
  threads: number,
): RowStage[] {
  const tasks = taskBytes({ schema, work });
  const largest = tasks?.reduce((most, bytes) => Math.max(most, bytes), 0) ?? sizes.ofStream;
  const kept = (tasks?.length ?? 0) * (ENTRY_BYTES * mostPartitions(parts) + PART_BYTES * parts);
  const name = `exchange ${by}, tasks of ${formatBytes(largest)}`;
  return [...belowOf({ work }), { name, bytes: (5 * threads + 2) * largest + kept }];
}

/**
 * Estimates the memory of the tasks that process the parts of an exchange. In memory at a time: in each
 * thread the rows of a part, the operators' state, the result, and the previous task's garbage; and two more
 * results that wait for the consumer. A key with very many rows needs more than this estimate.
 */
export function partsStage(name: string, bytes: number, threads: number): RowStage {
  return { name: `${name}, parts of ${formatBytes(bytes)}`, bytes: (4 * threads + 2) * bytes };
}
