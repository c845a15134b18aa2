import type { JsonObject } from '../engine/json.ts';
import { type Partition, pieceOf, type SharedColumn, type SpilledPartition } from '../engine/partition.ts';
import { receivedPartition, type SentPartition } from '../engine/threads/wide-views.ts';
import type { MatrixView, TaskScope } from './handler.ts';

/** A task with its data, as a thread receives it. */
export interface TaskRequest {
  readonly kernel: string;
  readonly params: JsonObject;
  readonly partitions: Readonly<Record<string, SentPartition>>;
  readonly matrices: Readonly<Record<string, MatrixView>>;
  /** Address of the thread's scratch memory. */
  readonly scratch: number;
}

/** Reads partitions that are in files. A page has none. */
export interface SpilledReaders {
  whole(spilled: SpilledPartition): Partition;
  piece(spilled: SpilledPartition, piece: number): SharedColumn;
}

/**
 * The scope in which a handler executes a request. A partition in a file is read when the task first asks for
 * it.
 */
export function scopeOf(
  { kernel, params, partitions, matrices, scratch }: TaskRequest,
  given: Pick<TaskScope, 'memory' | 'kernels' | 'cancelled'>,
  spilled?: SpilledReaders,
): TaskScope {
  const named = <T>(from: Readonly<Record<string, T>>, kind: string, name: string): T => {
    if (name in from) return from[name];
    throw new Error(`task ${kernel}: no ${kind} named ${name}`);
  };
  const read = new Map<string, Partition>();
  const partition = (name: string): Partition => {
    const sent = named(partitions, 'partition', name);
    if (spilled === undefined || sent.spilled === undefined) return receivedPartition(sent);
    const whole = read.get(name) ?? spilled.whole(sent.spilled);
    read.set(name, whole);
    return whole;
  };
  return {
    ...given,
    params,
    scratch,
    partition,
    piece: (name, piece) => {
      const sent = named(partitions, 'partition', name);
      return spilled === undefined || sent.spilled === undefined
        ? pieceOf(receivedPartition(sent), piece)
        : spilled.piece(sent.spilled, piece);
    },
    hasInput: (name) => name in partitions || name in matrices,
    hasMatrix: (name) => name in matrices,
    matrix: (name) => named(matrices, 'matrix', name),
  };
}
