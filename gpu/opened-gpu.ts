import { CancelledError } from '../engine/errors.ts';
import { Garbage, setCollector } from '../engine/run/garbage.ts';
import type { TaskOutcome } from '../engine/task.ts';
import { receivedPartition } from '../engine/threads/wide-views.ts';
import { WIRE_ROWS, type WireRows, wireRows } from './device/resources.ts';
import type { GpuTaskScope } from './handler.ts';
import type { Handle } from './registry.ts';
import { GpuStore } from './store.ts';
import type { GpuCommand, GpuRequest } from './thread-requests.ts';
import type { Turns } from './turns.ts';
import { Gpu } from './webgpu/gpu.ts';
import type { AcquiredGpu } from './webgpu/open-adapter.ts';
import type { Turn } from './webgpu/pass.ts';

type Command = Exclude<GpuCommand, { readonly type: 'open' }>;

/**
 * Connects a request with the thread's other requests: for cancelling it, and for letting the next one start.
 */
export interface RequestPlace {
  readonly slot: number;
  /** `flags[slot]` is not 0 once the request is cancelled. */
  readonly flags: Int32Array;
  readonly turns: Turns;
  readonly pass: () => void;
}

/** A GPU that was opened, with everything allocated on it. Executes the commands that its thread receives. */
export class OpenedGpu {
  readonly #gpu: Gpu;
  readonly #store: GpuStore;
  readonly #garbage = new Garbage();
  readonly #handle: Handle;
  /** Fetches that write rows to memory files, by number, until a request has awaited them. */
  readonly #fetches = new Map<number, Promise<number>>();

  /** `handle` runs tasks by name. `memoryBytes`: see Gpu. */
  constructor(acquired: AcquiredGpu, handle: Handle, memoryBytes: number | undefined) {
    setCollector(() => acquired.host.collectGarbage());
    this.#handle = handle;
    this.#gpu = new Gpu(acquired, memoryBytes);
    this.#store = new GpuStore(this.#gpu);
  }

  /** Throws DeviceLostError when the device is lost. */
  requireDevice(): void {
    this.#gpu.requireDevice('a task');
  }

  async execute(
    { changes, collection }: GpuRequest,
    command: Command,
    place: RequestPlace,
  ): Promise<TaskOutcome> {
    const [gpu, store] = [this.#gpu, this.#store];
    for (const change of changes) {
      if ('put' in change) store.put(change.put, receivedPartition(change.partition));
      else if ('allocate' in change) store.allocate(change.allocate, change.shape);
      else if ('leave' in change) store.leave(change.leave);
      else store.release(change.release);
    }
    this.#garbage.follow(collection);
    // A request submits all its transfers before it passes its turn on. So the difference between the
    // counters then and now is this request's bytes.
    const turn: Turn = (gpu.turn = { clocked: command.type === 'task' && command.clocked === true });
    const before = gpu.counters.bytes();
    let moved: ReturnType<typeof gpu.counters.bytes> | undefined;
    const pass = () => {
      moved ??= gpu.counters.bytes(before);
      place.pass();
    };
    const outcome = await this.#obey(command, { ...place, pass });
    // Spans are the timed sections of a trace. Only replies to tasks contain spans; the spans of a fetch wait
    // for the next task's reply.
    const spans = command.type === 'task' ? gpu.journal.take() : [];
    const counts = moved ?? gpu.counters.bytes(before);
    return { ...outcome, ...counts, ended: turn.ended, spans, memory: gpu.takeMemory() };
  }

  async #obey(command: Command, place: RequestPlace): Promise<TaskOutcome> {
    const [gpu, store] = [this.#gpu, this.#store];
    const { host } = gpu;
    switch (command.type) {
      case 'task':
        return this.#handle(
          command.kernel,
          await scopeOf(command, gpu, store, {
            cancelled: () => Atomics.load(place.flags, place.slot) !== 0,
            submitted: place.pass,
          }),
        );
      case 'fetch':
        if (command.into) return this.#fetchWire(command, command.into, place.pass);
        return { rows: 0, partitions: { fetched: await store.fetch(command.key, place.pass) } };
      case 'await-fetch':
        return this.#awaitFetch(command.number, place.pass);
      case 'collect':
        host.collectGarbage();
        return { rows: 0 };
      case 'trim':
        store.trim();
        host.collectGarbage();
        return { rows: 0 };
      case 'lose':
        // Closing the device unmaps memory that copies in progress still use.
        await host.pieces.ended();
        gpu.device.destroy();
        await gpu.device.lost;
        return { rows: 0 };
      case 'close':
        await place.turns.othersEnded();
        await Promise.allSettled(this.#fetches.values());
        await host.pieces.ended();
        store.trim();
        await gpu.close();
        return { rows: 0 };
    }
  }

  async #fetchWire(
    { key, number }: Extract<Command, { readonly type: 'fetch' }>,
    into: WireRows,
    pass: () => void,
  ): Promise<TaskOutcome> {
    const submitted = Promise.withResolvers<void>();
    const fetched = this.#store.fetchWire(key, into, () => {
      pass();
      submitted.resolve();
    });
    if (into.arrived === undefined || number === undefined) return { rows: await fetched };
    this.#fetches.set(number, fetched);
    // The request `await-fetch` reports a failure.
    fetched.catch(() => undefined);
    const { matrix } = await this.#store.prepare(key);
    await Promise.race([submitted.promise, fetched]);
    return { rows: matrix?.rows ?? 0 };
  }

  async #awaitFetch(number: number, pass: () => void): Promise<TaskOutcome> {
    pass();
    try {
      return { rows: (await this.#fetches.get(number)) ?? 0 };
    } finally {
      this.#fetches.delete(number);
    }
  }
}

/** The data and services of one task. Uploads inputs that are not on the GPU. */
export async function scopeOf(
  { kernel, params, inputs, outputs }: Omit<Extract<Command, { readonly type: 'task' }>, 'type'>,
  gpu: Gpu,
  store: GpuStore,
  { cancelled, submitted }: Pick<GpuTaskScope, 'cancelled' | 'submitted'>,
): Promise<GpuTaskScope> {
  // A request may be cancelled while it waits for its turn.
  if (cancelled()) throw new CancelledError();
  const keys: Readonly<Record<string, string>> = { ...outputs, ...inputs };
  for (const [name, key] of Object.entries(inputs)) {
    if (!store.has(key)) throw new Error(`task ${kernel}: input ${name} (${key}) is not on this GPU`);
  }
  if (inputs.transposeOf !== undefined) await store.prepareTransposed(inputs.data, inputs.transposeOf);
  for (const key of Object.values(keys)) if (store.has(key)) await store.prepare(key);
  const named = <T>(kind: string, name: string, found: T | undefined): T => {
    if (found === undefined) throw new Error(`task ${kernel}: no ${kind} named ${name}`);
    return found;
  };
  const entry = (name: string) => (name in keys && store.has(keys[name]) ? store.get(keys[name]) : undefined);
  return {
    gpu,
    params,
    hasMatrix: (name) => entry(name)?.matrix !== undefined,
    matrix: (name) => {
      const matrix = named('matrix', name, entry(name)?.matrix);
      if (matrix.halfOnly)
        throw new Error(
          `task ${kernel}: of the matrix named ${name} there is a copy of half the width alone`,
        );
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
    submitted,
  };
}
