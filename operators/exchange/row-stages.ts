import { DataType, type Field } from 'apache-arrow';
import { formatBytes } from '../../engine/format.ts';
import { wordsOfType } from '../../engine/keys/row-words.ts';
import { Aggregate } from '../dataflow/aggregate/aggregate.ts';
import { DistinctRows } from '../dataflow/distinct-rows.ts';
import { DropNulls } from '../dataflow/drop-nulls.ts';
import { MOST_MERGED } from '../dataflow/fewer-rows.ts';
import { Filter } from '../dataflow/filter.ts';
import { Project } from '../dataflow/project.ts';
import { Sample } from '../dataflow/sample.ts';
import type { ChainOperator } from '../pipeline/operator-chain.ts';
import type { SplitGroup } from '../pipeline/read-splits.ts';
import type { RowsWork } from '../pipeline/task-input.ts';
import type { RowStage } from './exchange-room.ts';
import { mostPartitions, type PartSizes } from './exchange.ts';

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

/**
 * The largest number of rows that a task can return, if its last operator merges rows with equal keys (a
 * group or `distinct`): the number of combinations of the keys' values, if it is known and so small that the
 * operator always merges. Otherwise Infinity.
 */
function mostGroups({ operators, taken, schema }: RowsWork): number {
  const merged = mergedBy(operators.at(-1));
  const keys = merged === 'all' ? schema.fields.map(({ name }) => name) : merged;
  if (keys === undefined || taken.kind !== 'splits') return Number.POSITIVE_INFINITY;
  const counts = keys.map((key) => {
    const name = operators.slice(0, -1).reduceRight<string | undefined>(nameBefore, key);
    return (name !== undefined && taken.mostValues?.[name]) || Number.POSITIVE_INFINITY;
  });
  const most = counts.reduce((product, count) => product * count, 1);
  return most <= MOST_MERGED ? most : Number.POSITIVE_INFINITY;
}

function mergedBy(operator: ChainOperator | undefined): readonly string[] | 'all' | undefined {
  return operator instanceof Aggregate || operator instanceof DistinctRows ? operator.mergedBy : undefined;
}

/** Name of a column before an operator that keeps it unchanged; undefined if the operator may change it. */
function nameBefore(name: string | undefined, operator: ChainOperator): string | undefined {
  if (name === undefined) return undefined;
  if (operator instanceof Project) {
    const { projection } = operator;
    if (projection.kind === 'drop') return name;
    if (projection.kind === 'rename') return name === projection.to ? projection.from : name;
    const made = projection.columns.find((column) => column.name === name);
    if (made === undefined) return name;
    return made.value.kind === 'column' ? made.value.name : undefined;
  }
  const keeps = [Filter, DropNulls, Sample].some((kind) => operator instanceof kind);
  return keeps ? name : undefined;
}

/** Estimated bytes of a value of variable length, with its offset. */
const TEXT_BYTES = 24;

/** Estimated bytes of a row in memory. */
function rowBytes({ fields }: { readonly fields: readonly Field[] }): number {
  return fields.reduce((sum, { type }) => sum + valueBytes(type), 0);
}

function valueBytes(type: DataType): number {
  if (DataType.isDictionary(type)) return valueBytes(type.indices);
  if (DataType.isBool(type)) return 1;
  if (DataType.isFixedSizeBinary(type)) return type.byteWidth;
  if (DataType.isStruct(type)) return rowBytes({ fields: type.children });
  if (DataType.isFixedSizeList(type)) return type.listSize * valueBytes(type.children[0].type);
  return 4 * wordsOfType(type) || TEXT_BYTES;
}
