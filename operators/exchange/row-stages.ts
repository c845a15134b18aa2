import { formatBytes } from '../../engine/format.ts';
import type { RowsWork } from '../pipeline/rows-work.ts';
import type { SplitGroup } from '../pipeline/split-order.ts';
import { mostPartitions } from './exchange.ts';
import type { RowStage } from './exchange-room.ts';
import { mostGroups } from './most-groups.ts';
import type { PartSizes } from './part-sizes.ts';
import { rowBytes } from './row-bytes.ts';

/** Bytes in memory for each that is stored, where the number of rows is not known. */
const UNPACKED = 4;

/** Bytes of the calling thread for each partition of a task: its entries, and its place in a file. */
const ENTRY_BYTES = 3 << 10;

/** Bytes for each part of a task: its size, its end and its checksum. */
const PART_BYTES = 32;

/** The rows that go into an exchange, as the stages of its run take them. */
interface InputRows {
  readonly schema: Parameters<typeof rowBytes>[0];
  readonly sizes: PartSizes;
  readonly work: RowsWork | { readonly stream: unknown };
}

/** Bytes of the rows of each task in memory, as far as they are known before rows are read. */
export function taskBytes({ schema, work }: Pick<InputRows, 'schema' | 'work'>): number[] | undefined {
  if ('stream' in work || work.taken.kind !== 'splits') return undefined;
  const each = rowBytes(schema);
  const most = mostGroups(work) * each;
  const bytesOfTask = (group: SplitGroup) =>
    group.reduce((sum, { rows, bytes }) => sum + (rows === undefined ? UNPACKED * bytes : rows * each), 0);
  return work.taken.groups.map((group) => Math.min(most, bytesOfTask(group)));
}

/** The stages of the exchanges below an input. */
export function belowOf({ work }: Pick<InputRows, 'work'>): readonly RowStage[] {
  return 'stream' in work || work.taken.kind !== 'exchange' ? [] : work.taken.exchange.stages();
}

/**
 * The stages of an input: first the stages of its own exchanges, then its tasks that divide rows. For each
 * thread a task has the rows that it reads or a table of them, the rows by part, the same in one memory, and
 * what the task before has left; two more are done and not taken yet.
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
 * The stage of tasks over parts: each thread has the rows of a part, what operators hold of them, the result,
 * and what the task before has left; two more results are done and not taken yet. A key with many rows takes
 * more.
 */
export function partsStage(name: string, bytes: number, threads: number): RowStage {
  return { name: `${name}, parts of ${formatBytes(bytes)}`, bytes: (4 * threads + 2) * bytes };
}
