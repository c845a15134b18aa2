/** Entry of a CPU worker thread: runs one task at a time against the shared WebAssembly memory. */
import { setImmediate } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';
import { Garbage, setCollector } from '../engine/run/garbage.ts';
import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { serializeError } from '../engine/errors.ts';
import { readSpilled, readSpilledPiece } from './read-spilled.ts';
import { sharedClock } from '../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../engine/threads/thread-pool.ts';
import type { GivenHandlers, GivenTasks } from './handler.ts';
import { loadKernels } from './kernels.ts';
import { handlerOf } from './registry.ts';
import { scopeOf, type TaskRequest } from './task-scope.ts';

export interface CpuWorkerData {
  readonly memory: WebAssembly.Memory;
  readonly compiled: WebAssembly.Module;
  /** The URL of a module with further handlers. */
  readonly handlers?: string;
  /** The task of these handlers whose modules are loaded before the first task arrives. */
  readonly loads?: string | undefined;
}

export interface CpuRequest extends TaskRequest {
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
const spilled = { whole: readSpilled, piece: readSpilledPiece };

export default async function runTask({
  slot,
  request,
}: {
  slot: number;
  request: CpuRequest;
}): Promise<WorkerReply> {
  const start = sharedClock();
  // The pool's library waits for the next task without returning to the event loop, and until then V8 keeps
  // alive everything that a WeakRef was made for.
  if (request.collection !== garbage.collection) await setImmediate();
  garbage.follow(request.collection);
  try {
    const handler = handlerOf(request.kernel) ?? (await givenHandler(request.kernel));
    const cancelled = () => Atomics.load(flags, slot) !== 0;
    const outcome = await handler(scopeOf(request, { memory, kernels, cancelled }, spilled));
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
