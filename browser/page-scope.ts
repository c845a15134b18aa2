import type { MatrixView, TaskScope } from '../cpu/handler.ts';
import type { Kernels } from '../cpu/kernels.ts';
import type { JsonObject } from '../engine/json.ts';
import { pieceOf } from '../engine/partition.ts';
import { receivedPartition, type SentPartition } from '../engine/threads/wide-views.ts';

/** A task with its data, as a thread receives it. */
export interface PageRequest {
  readonly kernel: string;
  readonly params: JsonObject;
  readonly partitions: Readonly<Record<string, SentPartition>>;
  readonly matrices: Readonly<Record<string, MatrixView>>;
  /** Address of the thread's scratch memory. */
  readonly scratch: number;
}

/** The memory of matrices, and the kernels that compute in it. */
export interface PageMemory {
  readonly memory: WebAssembly.Memory;
  readonly kernels: Kernels;
}

/** The scope in which a handler executes a request. */
export function scopeOf(
  { kernel, params, partitions, matrices, scratch }: PageRequest,
  { memory, kernels }: PageMemory,
  cancelled: () => boolean,
): TaskScope {
  const named = <T>(from: Readonly<Record<string, T>>, kind: string, name: string): T => {
    if (name in from) return from[name];
    throw new Error(`task ${kernel}: no ${kind} named ${name}`);
  };
  const partition = (name: string) => receivedPartition(named(partitions, 'partition', name));
  return {
    params,
    partition,
    piece: (name, piece) => pieceOf(partition(name), piece),
    hasInput: (name) => name in partitions || name in matrices,
    hasMatrix: (name) => name in matrices,
    matrix: (name) => named(matrices, 'matrix', name),
    scratch,
    memory,
    kernels,
    cancelled,
  };
}
