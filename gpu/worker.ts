/** Entry of the thread that owns one GPU: it keeps the device, its buffers and its compiled kernels from task to task. */
import { workerData } from 'node:worker_threads';
import { collectGarbage } from '../engine/threads/collect-garbage.ts';
import { CancelledError, DeviceLostError, serializeError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { MatrixShape } from '../engine/partition.ts';
import type { TaskOutcome } from '../engine/task.ts';
import { sharedClock } from '../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../engine/threads/thread-pool.ts';
import { receivedPartition, type SentPartition } from '../engine/threads/wide-views.ts';
import type { AcquireOptions } from './webgpu/gpu-info.ts';
import { Gpu } from './webgpu/gpu.ts';
import { WIRE_ROWS, type WireRows, wireRows } from './device/resources.ts';
import { copiesEnded } from './exchange/copy-files.ts';
import type { GpuTaskScope } from './handler.ts';
import { handle } from './registry.ts';
import { GpuStore } from './store.ts';
import { Turns } from './turns.ts';

/** The changes to a partition between two requests, in order. */
export type StoreChange =
  | { readonly put: string; readonly partition: SentPartition }
  | { readonly allocate: string; readonly shape: Omit<MatrixShape, 'stride'> }
  | { readonly release: string }
  /** Its host form is no longer read. */
  | { readonly leave: string };

export type GpuCommand =
  | { readonly type: 'open'; readonly options: AcquireOptions & { readonly memoryBytes?: number | undefined } }
  /** Inputs and outputs by the task's names for them: keys of partitions. */
  | { readonly type: 'task'; readonly kernel: string; readonly params: JsonObject; readonly inputs: Readonly<Record<string, string>>; readonly outputs: Readonly<Record<string, string>> }
  /** Gives the partition as `fetched`; `into`: a matrix comes there as it lies on the device. */
  | { readonly type: 'fetch'; readonly key: string; readonly into?: WireRows }
  | { readonly type: 'trim' }
  /** Brings the changes and the collection that come with it, and no work. */
  | { readonly type: 'collect' }
  /** Ends the device, or the thread, as a crash would: for tests. */
  | { readonly type: 'lose'; readonly what: 'device' | 'thread' }
  | { readonly type: 'close' };

export interface GpuRequest {
  readonly changes: readonly StoreChange[];
  readonly command: GpuCommand;
  /** A new number asks for the collection of garbage. */
  readonly collection: number;
}

type TaskCommand = Extract<GpuCommand, { readonly type: 'task' }>;

/** Piscina hands a thread [its own data, ours] when ports are in use, and ours alone otherwise. */
const { flags } = (Array.isArray(workerData) ? workerData.at(-1) : workerData) as { readonly flags: Int32Array };

const turns = new Turns();
let collection = 0;
let opened: { readonly gpu: Gpu; readonly store: GpuStore } | undefined;

export default function answer({ slot, request }: { readonly slot: number; readonly request: GpuRequest }): Promise<WorkerReply> {
  return turns.run(async (pass) => {
    const start = sharedClock();
    try {
      const outcome = await execute(request, slot, pass);
      return { outcome, start, milliseconds: sharedClock() - start };
    } catch (error) {
      return { error: serializeError(await causeOf(error)) };
    }
  });
}

async function execute({ changes, command, collection: asked }: GpuRequest, slot: number, pass: () => void): Promise<TaskOutcome> {
  if (command.type === 'open') {
    const gpu = await Gpu.open(command.options);
    opened = { gpu, store: new GpuStore(gpu) };
    return { rows: 0, values: { ...gpu.info } as unknown as JsonObject };
  }
  if (opened === undefined) throw new DeviceLostError('the thread of the GPU ended, and what it held is gone', { phase: 'gpu' });
  const { gpu, store } = opened;
  for (const change of changes) {
    if ('put' in change) store.put(change.put, receivedPartition(change.partition));
    else if ('allocate' in change) store.allocate(change.allocate, change.shape);
    else if ('leave' in change) store.leave(change.leave);
    else store.release(change.release);
  }
  if (asked !== collection) {
    collection = asked;
    collectGarbage();
  }
  // All that a request moves it submits in its turn.
  const before = gpu.counters.counts;
  let moved: ReturnType<typeof gpu.counters.since> | undefined;
  const outcome = await obey(command, gpu, store, slot, () => {
    moved ??= gpu.counters.since(before);
    pass();
  });
  // A reply to a task takes them on; those of fetches wait for the next one.
  const spans = command.type === 'task' ? gpu.journal.take() : [];
  return { ...outcome, ...(moved ?? gpu.counters.since(before)), spans, memory: gpu.takeMemory() };
}

async function obey(command: Exclude<GpuCommand, { readonly type: 'open' }>, gpu: Gpu, store: GpuStore, slot: number, pass: () => void): Promise<TaskOutcome> {
  switch (command.type) {
    case 'task':
      return runTask(command, gpu, store, slot, pass);
    case 'fetch':
      if (command.into) return { rows: await store.fetchWire(command.key, command.into, pass) };
      return { rows: 0, partitions: { fetched: await store.fetch(command.key, pass) } };
    case 'collect':
      collectGarbage();
      return { rows: 0 };
    case 'trim':
      store.trim();
      collectGarbage();
      return { rows: 0 };
    case 'lose':
      if (command.what === 'thread') process.exit(1);
      // The memory that they copy goes with the device.
      await copiesEnded();
      gpu.device.destroy();
      await gpu.device.lost;
      return { rows: 0 };
    case 'close':
      await turns.othersEnded();
      await copiesEnded();
      store.trim();
      await gpu.close();
      return { rows: 0 };
  }
}

async function runTask({ kernel, params, inputs, outputs }: TaskCommand, gpu: Gpu, store: GpuStore, slot: number, pass: () => void): Promise<TaskOutcome> {
  const cancelled = () => Atomics.load(flags, slot) !== 0;
  // While others had their turns.
  if (cancelled()) throw new CancelledError();
  const keys: Readonly<Record<string, string>> = { ...outputs, ...inputs };
  for (const [name, key] of Object.entries(inputs)) {
    if (!store.has(key)) throw new Error(`task ${kernel}: input ${name} (${key}) is not on this GPU`);
  }
  for (const key of Object.values(keys)) if (store.has(key)) await store.prepare(key);
  const named = <T>(kind: string, name: string, found: T | undefined): T => {
    if (found === undefined) throw new Error(`task ${kernel}: no ${kind} named ${name}`);
    return found;
  };
  const entry = (name: string) => (name in keys && store.has(keys[name]) ? store.get(keys[name]) : undefined);
  const scope: GpuTaskScope = {
    gpu,
    params,
    hasMatrix: (name) => entry(name)?.matrix !== undefined,
    matrix: (name) => {
      const matrix = named('matrix', name, entry(name)?.matrix);
      if (matrix.halfOnly) throw new Error(`task ${kernel}: of the matrix named ${name} there is a copy of half the width alone`);
      return matrix;
    },
    matrixOrHalf: (name) => entry(name)?.matrix,
    wire: (name) => {
      const partition = entry(name)?.partition;
      return partition?.layout === WIRE_ROWS ? wireRows(partition) : undefined;
    },
    matrixWithHalf: (name) => store.withHalf(named('matrix', name, keys[name]), name in outputs),
    block: (name) => named('block', name, entry(name)?.block),
    list: (name) => named('list', name, entry(name)?.list),
    vector: (name) => named('vector', name, entry(name)?.vector),
    partition: (name) => named('partition', name, entry(name)?.partition),
    has: (name) => name in inputs,
    cancelled,
    submitted: pass,
  };
  return handle(kernel, scope);
}

/** Every failure after the loss of the device is reported as that loss. */
async function causeOf(error: unknown): Promise<unknown> {
  if (opened === undefined || error instanceof DeviceLostError) return error;
  await new Promise((resolve) => setImmediate(resolve));
  try {
    opened.gpu.requireDevice('a task');
    return error;
  } catch (lost) {
    return lost;
  }
}
