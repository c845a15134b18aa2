import { DeviceLostError, sessionClosed } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { MatrixShape } from '../engine/partition.ts';
import type { Place } from '../engine/plan/place.ts';
import { Garbage } from '../engine/run/garbage.ts';
import { MemoryMeter } from '../engine/run/memory-meter.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { ThreadOutcome, ThreadPool } from '../engine/threads/thread-pool.ts';
import type { SentPartition } from '../engine/threads/wide-views.ts';
import type { WireRows } from './device/resources.ts';
import type { AcquireOptions } from './webgpu/gpu-info.ts';

/** A change to the partitions of the GPU's thread, sent with the next request. */
type StoreChange =
  | { readonly put: string; readonly partition: SentPartition }
  | { readonly allocate: string; readonly shape: Omit<MatrixShape, 'stride'> }
  | { readonly release: string }
  /** The thread frees the partition's copy in host memory. */
  | { readonly leave: string };

export type GpuCommand =
  | {
      readonly type: 'open';
      readonly options: AcquireOptions & { readonly memoryBytes?: number | undefined };
    }
  /** `inputs` and `outputs`: keys of partitions by the task's names. */
  | {
      readonly type: 'task';
      readonly kernel: string;
      readonly params: JsonObject;
      readonly inputs: Readonly<Record<string, string>>;
      readonly outputs: Readonly<Record<string, string>>;
      readonly clocked?: boolean | undefined;
    }
  /**
   * Returns the partition as `fetched`. `into`: memory to which a matrix is copied, with the padding that it
   * has on the device. If this has a list of arrived pieces, the request ends when all copies are submitted
   * to the GPU, and a request `await-fetch` with the same `number` must follow.
   */
  | { readonly type: 'fetch'; readonly key: string; readonly into?: WireRows; readonly number?: number }
  /** Ends when the fetch with this number has written all its rows to memory files. */
  | { readonly type: 'await-fetch'; readonly number: number }
  | { readonly type: 'trim' }
  /**
   * Does nothing itself, but like every request it delivers pending changes and a request to collect garbage.
   */
  | { readonly type: 'collect' }
  /** Ends the device, or the thread, as a crash would: for tests. */
  | { readonly type: 'lose'; readonly what: 'device' | 'thread' }
  | { readonly type: 'close' };

export interface GpuRequest {
  readonly changes: readonly StoreChange[];
  readonly command: GpuCommand;
  /** Number of garbage collections requested so far. The thread collects when it has increased. */
  readonly collection: number;
}

/** Executes requests, in the order in which they are made. */
export type RequestPool = Pick<ThreadPool, 'returnEarly' | 'close'> & {
  run(makeRequest: () => GpuRequest, signal?: AbortSignal): Promise<ThreadOutcome>;
};

/**
 * Sends requests to a GPU's thread. Each carries the pending changes of partitions (StoreChanges). After the
 * thread or its GPU is lost, all requests fail with that error.
 */
export class ThreadRequests {
  readonly changes = new StoreChanges();
  /** Memory of the GPU, as the thread reports it. */
  readonly memory = new MemoryMeter();
  readonly #pool: RequestPool;
  readonly #garbage = new Garbage();
  #lost: DeviceLostError | undefined;
  #closing = false;

  constructor(pool: RequestPool) {
    this.#pool = pool;
  }

  /** True until the GPU is lost or closes. */
  get open(): boolean {
    return this.#lost === undefined && !this.#closing;
  }

  async send(command: GpuCommand, signal?: AbortSignal) {
    const changes = this.changes.promise();
    try {
      if (this.#lost !== undefined) throw this.#lost;
      // Otherwise the thread would receive the request after the GPU was closed.
      if (this.#closing && command.type !== 'close') throw sessionClosed();
      const answer = await this.#pool.run(
        (): GpuRequest => ({ changes: changes(), command, collection: this.#garbage.collection }),
        signal,
      );
      this.#count(answer.outcome.memory);
      return answer;
    } catch (error) {
      if (error instanceof DeviceLostError) this.#lost ??= error;
      throw error;
    }
  }

  /**
   * Takes over the memory that the thread reports: its peak since the last answer, then its current value.
   */
  #count(memory: TaskOutcome['memory']): void {
    if (memory === undefined) return;
    this.memory.add(memory.peak - this.memory.now);
    this.memory.add(memory.now - this.memory.now);
  }

  /**
   * Makes the error for all requests after the thread ended by itself, which means that the GPU is lost too.
   */
  lose(cause: unknown, { name, place }: { readonly name: string; readonly place: Place }): DeviceLostError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    this.#lost ??= new DeviceLostError(`the thread of the GPU ${name} ended (${reason})`, {
      phase: 'gpu',
      device: place,
      cause,
    });
    return this.#lost;
  }

  /**
   * Counts `bytes` of shared memory as garbage, since this thread has released them. If enough garbage has
   * accumulated, this thread collects it now, and the GPU's thread does with its next request.
   */
  collect(bytes: number): void {
    // No collection is needed: the GPU's thread is about to end, and this process can collect later.
    if (this.#closing) return;
    this.#garbage.add(bytes);
    this.#garbage.collectIfDue();
  }

  /** Closes the GPU, unless it is lost, and ends its thread. */
  async close(): Promise<void> {
    if (this.open) {
      this.#closing = true;
      // If the thread ended by itself, it is closed already.
      await this.send({ type: 'close' }).catch(() => undefined);
    }
    await this.#pool.close();
  }
}

/**
 * Puts, allocations and releases of partitions that the GPU's thread has not received yet. They are sent with
 * the next request, in order.
 */
class StoreChanges {
  /**
   * Pending changes. The first element is change number `#sent`, counted since the start. An element is
   * undefined if a later change made it unnecessary.
   */
  readonly #changes: (StoreChange | undefined)[] = [];
  /** The number of the last pending change, by key of the partition. */
  readonly #lastByKey = new Map<string, number>();
  #sent = 0;
  /**
   * Changes before this number belong to requests that have been made, though the thread may not have taken
   * these requests yet.
   */
  #promised = 0;

  /**
   * Adds a change. It replaces the last pending change of the same partition, unless that one already belongs
   * to a request. So a partition that is put and released between two requests is never sent.
   */
  note(change: StoreChange): void {
    const key = keyOf(change);
    const earlier = this.#lastByKey.get(key);
    if (earlier !== undefined && earlier >= this.#promised) this.#changes[earlier - this.#sent] = undefined;
    this.#lastByKey.set(key, this.#sent + this.#changes.length);
    this.#changes.push(change);
  }

  /**
   * Assigns the pending changes to a request that is made now. Returns a function that returns the changes
   * to send, to be called when the thread takes the request. Requests are taken in order.
   */
  promise(): () => StoreChange[] {
    const until = this.#sent + this.#changes.length;
    this.#promised = until;
    return () => {
      const changes = this.#changes.splice(0, Math.max(0, until - this.#sent));
      for (const [i, change] of changes.entries()) {
        if (change !== undefined && this.#lastByKey.get(keyOf(change)) === this.#sent + i)
          this.#lastByKey.delete(keyOf(change));
      }
      this.#sent += changes.length;
      return changes.filter((change) => change !== undefined);
    };
  }
}

function keyOf(change: StoreChange): string {
  if ('put' in change) return change.put;
  if ('leave' in change) return change.leave;
  return 'allocate' in change ? change.allocate : change.release;
}
