/** Entry of a CPU worker thread: runs one task at a time against the shared WebAssembly memory. */
import { workerData } from 'node:worker_threads';
import { Garbage, setCollector } from '../engine/run/garbage.ts';
import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { serializeError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import { type Partition, pieceOf } from '../engine/partition.ts';
import { receivedPartition, type SentPartition } from '../engine/threads/wide-views.ts';
import { readSpilled, readSpilledPiece } from './read-spilled.ts';
import { sharedClock } from '../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../engine/threads/thread-pool.ts';
import type { GivenHandlers, GivenTasks, MatrixView, TaskScope } from './handler.ts';
import { loadKernels } from './kernels.ts';
import { handlerOf } from './registry.ts';

export interface CpuWorkerData {
  readonly memory: WebAssembly.Memory;
  readonly compiled: WebAssembly.Module;
  /** The URL of a module with further handlers. */
  readonly handlers?: string;
  /** The task of these handlers whose modules are loaded before the first task arrives. */
  readonly loads?: string | undefined;
}

export interface CpuRequest {
  readonly kernel: string;
  readonly params: JsonObject;
  readonly partitions: Readonly<Record<string, SentPartition>>;
  readonly matrices: Readonly<Record<string, MatrixView>>;
  readonly scratch: number;
  readonly collection: number;
}

/**
 * The thread pool's library, Piscina, passes a thread [its own data, ours] if ports are in use, else only
 * ours.
 */
const { memory, compiled, handlers, loads, flags } = (
  Array.isArray(workerData) ? workerData.at(-1) : workerData
) as CpuWorkerData & { flags: Int32Array };
const kernels = loadKernels(memory, compiled);
if (loads !== undefined) await (await given())?.load?.(loads);

setCollector(collectGarbage);
const garbage = new Garbage();

export default async function runTask({
  slot,
  request,
}: {
  slot: number;
  request: CpuRequest;
}): Promise<WorkerReply> {
  const start = sharedClock();
  garbage.follow(request.collection);
  try {
    const handler = handlerOf(request.kernel) ?? (await givenHandler(request.kernel));
    const outcome = await handler(scopeOf(request, slot));
    return { outcome, start, milliseconds: sharedClock() - start };
  } catch (error) {
    return { error: serializeError(error) };
  }
}

async function givenHandler(kernel: string): Promise<GivenHandlers[string]> {
  if (kernel === 'spill') return (await import('./write-spilled.ts')).spill;
  const handler = (await given())?.handlers[kernel];
  if (handler === undefined) throw new Error(`no CPU handler is registered for the task ${kernel}`);
  return handler;
}

async function given(): Promise<GivenTasks | undefined> {
  return handlers === undefined ? undefined : ((await import(handlers)) as GivenTasks);
}

function scopeOf(request: CpuRequest, slot: number): TaskScope {
  const named = <T>(from: Readonly<Record<string, T>>, kind: string, name: string): T => {
    const found = from[name];
    if (found === undefined) throw new Error(`task ${request.kernel}: no ${kind} named ${name}`);
    return found;
  };
  const read = new Map<string, Partition>();
  return {
    params: request.params,
    partition: (name) => {
      const sent = named(request.partitions, 'partition', name);
      if (sent.spilled === undefined) return receivedPartition(sent);
      // Read when the task first requests it.
      const partition = read.get(name) ?? readSpilled(sent.spilled);
      read.set(name, partition);
      return partition;
    },
    piece: (name, piece) => {
      const sent = named(request.partitions, 'partition', name);
      if (sent.spilled !== undefined) return readSpilledPiece(sent.spilled, piece);
      return pieceOf(receivedPartition(sent), piece);
    },
    hasInput: (name) => name in request.partitions || name in request.matrices,
    hasMatrix: (name) => name in request.matrices,
    matrix: (name) => named(request.matrices, 'matrix', name),
    scratch: request.scratch,
    memory,
    kernels,
    cancelled: () => Atomics.load(flags, slot) !== 0,
  };
}
