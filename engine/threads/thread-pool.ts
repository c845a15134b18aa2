import { Piscina } from 'piscina';
import { deserializeError, type SerializedError, sessionClosed, throwIfAborted } from '../errors.ts';
import type { TaskOutcome } from '../task.ts';
import { CANCEL_MILLISECONDS } from '../waits.ts';
import { missingFile } from './missing-file.ts';
import { workerFile } from './worker-file.ts';

/** An outcome with its duration; `start` is by sharedClock(). */
export interface ThreadOutcome {
  readonly outcome: TaskOutcome;
  readonly start: number;
  readonly milliseconds: number;
}

/** A worker's reply. Errors are sent as data, since a thrown object would lose its class between threads. */
export type WorkerReply = ThreadOutcome | { readonly error: SerializedError };

export interface ThreadPoolOptions {
  /** Concurrent requests of a thread; default 1. With more, its handler can start one while another waits. */
  readonly requests?: number;
  /**
   * 'disabled': threads wait for requests in their event loop. Threads with pending promises, such as for a
   * GPU, need that; other threads reply slightly faster without it.
   */
  readonly atomics?: 'sync' | 'disabled';
  /**
   * Called when a thread ends by itself, with or without a request; returns the error that its request
   * throws.
   */
  readonly crashed?: (cause: unknown) => Error;
}

/**
 * A fixed number of worker threads, managed by piscina; each runs one request at a time, or the configured
 * number.
 *
 * Contract: `slot` is unique among running requests (0 .. threads · requests - 1), so the caller may tie
 * memory to it. Further requests wait in order. Cancelling sets the slot's flag in shared memory: the worker
 * checks it between chunks and returns early; its thread is kept (aborting a piscina task would end the
 * thread).
 */
export class ThreadPool {
  readonly threads: number;
  readonly #piscina: Piscina<unknown, WorkerReply>;
  readonly #flags: Int32Array;
  readonly #free: number[];
  readonly #waiting: ((slot: number) => void)[] = [];
  readonly #crashed: (cause: unknown) => Error;
  readonly #running = new Map<Promise<WorkerReply>, RunningRequest>();
  /** The error of the last thread that ended without a request. */
  #lastCause: unknown = new Error('no thread is left');
  #closed = false;

  constructor(
    module: URL,
    threads: number,
    workerData: Readonly<Record<string, unknown>>,
    { requests = 1, atomics = 'sync', crashed }: ThreadPoolOptions = {},
  ) {
    this.threads = threads;
    const slots = threads * requests;
    this.#flags = new Int32Array(new SharedArrayBuffer(4 * slots));
    this.#free = Array.from({ length: slots }, (_, slot) => slots - 1 - slot);
    this.#piscina = new Piscina({
      filename: workerFile(new URL('./import-worker.cjs', import.meta.url)).href,
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: requests,
      idleTimeout: Number.POSITIVE_INFINITY,
      atomics,
      workerData: { ...workerData, ofSession: true, module: module.href, flags: this.#flags },
    });
    this.#crashed = crashed ?? ((cause) => cause as Error);
    // Without a listener, an idle thread that ends would end the process.
    this.#piscina.on('error', (cause: unknown) => {
      this.#lastCause = cause;
      crashed?.(cause);
    });
    this.#piscina.on('workerDestroy', () => queueMicrotask(() => this.#rejectWithoutThreads()));
  }

  requireOpen(): void {
    if (this.#closed) throw sessionClosed();
  }

  async run(
    makeRequest: (slot: number) => unknown,
    signal?: AbortSignal,
  ): Promise<ThreadOutcome & { readonly slot: number }> {
    const slot = this.#free.pop() ?? (await new Promise<number>((resolve) => this.#waiting.push(resolve)));
    const { promise: request, resolve, reject } = Promise.withResolvers<WorkerReply>();
    const running: RunningRequest = { signal, reject };
    const cancel = () => {
      running.cancelled = performance.now();
      Atomics.store(this.#flags, slot, 1);
    };
    try {
      throwIfAborted(signal);
      // Piscina would start new threads, which would never be ended.
      this.requireOpen();
      Atomics.store(this.#flags, slot, 0);
      signal?.addEventListener('abort', cancel, { once: true });
      this.#piscina.run({ slot, request: makeRequest(slot) }).then(resolve, reject);
      this.#running.set(request, running);
      const reply = await request
        .catch((cause: unknown) => {
          throw missingFile(cause) ?? this.#crashed(cause);
        })
        .finally(() => this.#running.delete(request));
      throwIfAborted(signal);
      if ('error' in reply) throw deserializeError(reply.error);
      return { ...reply, slot };
    } finally {
      signal?.removeEventListener('abort', cancel);
      const next = this.#waiting.shift();
      if (next) next(slot);
      else this.#free.push(slot);
    }
  }

  /**
   * Piscina does not replace a thread that ends while it loads, and its queued requests then wait for a
   * thread that never starts. The next request starts a thread again.
   */
  #rejectWithoutThreads(): void {
    if (this.#piscina.threads.length > 0) return;
    for (const { reject } of this.#running.values()) reject(this.#lastCause);
  }

  /** Asks running requests to return early; their outcomes are not used. */
  returnEarly(): void {
    for (let slot = 0; slot < this.#flags.length; slot++) Atomics.store(this.#flags, slot, 1);
  }

  /**
   * Waits for running requests, then ends the threads, including threads whose request does not end within
   * the time allowed after a cancel. Later and waiting requests throw UsageError.
   */
  async close(): Promise<void> {
    this.#closed = true;
    // Piscina itself only waits for the first of several threads.
    const ended = await Promise.all(
      [...this.#running].map(([request, running]) => endsInTime(request, running)),
    );
    await (ended.every(Boolean) ? this.#piscina.close() : this.#piscina.destroy());
  }
}

interface RunningRequest {
  readonly signal: AbortSignal | undefined;
  readonly reject: (cause: unknown) => void;
  /** When it was cancelled, by performance.now(). */
  cancelled?: number;
}

/** True once a request has ended; false if it runs too long after a cancel. */
function endsInTime(request: Promise<unknown>, running: RunningRequest): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const { signal } = running;
  let timer: NodeJS.Timeout | undefined;
  const cancelled = () => {
    const since = performance.now() - (running.cancelled ?? performance.now());
    timer = setTimeout(() => resolve(false), CANCEL_MILLISECONDS - since);
  };
  if (signal?.aborted) cancelled();
  else signal?.addEventListener('abort', cancelled, { once: true });
  const ended = () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancelled);
    resolve(true);
  };
  request.then(ended, ended);
  return promise;
}
