import { Piscina } from 'piscina';
import {
  deserializeError,
  missingFile,
  type SerializedError,
  sessionClosed,
  throwIfAborted,
} from '../errors.ts';
import type { TaskOutcome } from '../task.ts';
import { CANCEL_MILLISECONDS } from '../waits.ts';
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
  /** Threads that start with the pool, before any request waits; default 1. */
  readonly atOnce?: number;
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
 * Up to a fixed number of worker threads; each runs one request at a time, or the configured number. One
 * thread (or `atOnce`) starts with the pool and loads while its caller prepares the first request. A further
 * one starts when a request waits that no started thread can take: a thread costs 0.1 s of a processor, and a
 * brief command needs one or two.
 *
 * Contract: `slot` is unique among running requests (0 .. threads · requests - 1), so the caller may tie
 * memory to it; each thread has its own slots. Further requests wait in order. Cancelling sets the slot's
 * flag in shared memory: the worker checks it between chunks and returns early; its thread is kept (aborting
 * a piscina task would end the thread).
 */
export class ThreadPool {
  readonly threads: number;
  readonly #requests: number;
  readonly #options: ConstructorParameters<typeof Piscina>[0];
  /** Each thread is a piscina, since a shared one would start threads by rules of its own. */
  readonly #started: Thread[] = [];
  /** The first slot of each thread that takes requests. */
  readonly #loaded: number[] = [];
  readonly #flags: Int32Array;
  readonly #free: number[] = [];
  readonly #waiting: ((slot: number) => void)[] = [];
  readonly #crashed: ThreadPoolOptions['crashed'];
  readonly #running = new Map<Promise<WorkerReply>, RunningRequest>();
  #closed = false;

  constructor(
    module: URL,
    threads: number,
    workerData: Readonly<Record<string, unknown>>,
    { requests = 1, atOnce = 1, atomics = 'sync', crashed }: ThreadPoolOptions = {},
  ) {
    this.threads = threads;
    this.#requests = requests;
    this.#flags = new Int32Array(new SharedArrayBuffer(4 * threads * requests));
    this.#options = {
      filename: workerFile(new URL('./import-worker.cjs', import.meta.url)).href,
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: requests,
      idleTimeout: Number.POSITIVE_INFINITY,
      atomics,
      recordTiming: false,
      workerData: { ...workerData, ofSession: true, module: module.href, flags: this.#flags },
    };
    this.#crashed = crashed;
    // Requests are sent to these threads while they load, since no other could take them earlier.
    const first = Array.from({ length: atOnce }, () => this.#start());
    for (const thread of first.toReversed()) this.#offerThread(thread);
  }

  requireOpen(): void {
    if (this.#closed) throw sessionClosed();
  }

  async run(
    makeRequest: (slot: number) => unknown,
    signal?: AbortSignal,
  ): Promise<ThreadOutcome & { readonly slot: number }> {
    const slot = this.#free.pop() ?? (await this.#nextSlot());
    let reply: WorkerReply | undefined;
    try {
      throwIfAborted(signal);
      // Piscina would start new threads, which would never be ended.
      this.requireOpen();
      Atomics.store(this.#flags, slot, 0);
      reply = await this.#send(slot, makeRequest, signal);
      throwIfAborted(signal);
      if ('error' in reply) throw deserializeError(reply.error);
      return { ...reply, slot };
    } finally {
      this.#offerSlot(slot, reply !== undefined);
    }
  }

  /** Runs a request in every thread that has loaded, after the thread's running requests. */
  async runInEach(makeRequest: (slot: number) => unknown): Promise<void> {
    await Promise.all(this.#loaded.map((slot) => this.#send(slot, makeRequest)));
  }

  /** Waits for a slot; starts a thread if those that load will not have enough. */
  #nextSlot(): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.push(resolve);
    const loading = this.#started.length - this.#loaded.length;
    if (this.#waiting.length > loading * this.#requests && this.#started.length < this.threads) {
      const thread = this.#start();
      // import-worker sends a message when it has loaded the module.
      this.#started[thread].once('message', () => this.#offerThread(thread));
    }
    return promise;
  }

  /** Starts a thread and returns its number. */
  #start(): number {
    const thread: Thread = new Piscina(this.#options);
    let lastCause: unknown = new Error('the thread ended');
    // Without a listener, an idle thread that ends would end the process.
    thread.on('error', (cause: unknown) => {
      lastCause = cause;
      this.#crashed?.(cause);
    });
    // Piscina does not replace a thread that ends while it loads, and its requests would then wait for a
    // thread that never starts. The next request starts a thread again.
    const rejectWithoutThread = () => {
      if (thread.threads.length > 0) return;
      for (const running of this.#running.values()) if (running.thread === thread) running.reject(lastCause);
    };
    thread.on('workerDestroy', () => queueMicrotask(rejectWithoutThread));
    return this.#started.push(thread) - 1;
  }

  #offerThread(thread: number): void {
    const first = thread * this.#requests;
    this.#loaded.push(first);
    for (let slot = first + this.#requests - 1; slot >= first; slot--) this.#offerSlot(slot, true);
  }

  /** `first`: false after a failure, since the thread may have ended and then starts again. */
  #offerSlot(slot: number, first: boolean): void {
    const next = this.#waiting.shift();
    if (next) next(slot);
    else if (first) this.#free.push(slot);
    else this.#free.unshift(slot);
  }

  async #send(
    slot: number,
    makeRequest: (slot: number) => unknown,
    signal?: AbortSignal,
  ): Promise<WorkerReply> {
    const thread = this.#started[Math.floor(slot / this.#requests)];
    const message = { slot, request: makeRequest(slot) };
    const { promise: request, resolve, reject } = Promise.withResolvers<WorkerReply>();
    const running: RunningRequest = { thread, signal, reject };
    const cancel = () => {
      running.cancelled = performance.now();
      Atomics.store(this.#flags, slot, 1);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      thread.run(message).then(resolve, reject);
      this.#running.set(request, running);
      return await request;
    } catch (cause) {
      throw missingFile(cause) ?? this.#crashed?.(cause) ?? cause;
    } finally {
      this.#running.delete(request);
      signal?.removeEventListener('abort', cancel);
    }
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
    const ended = await Promise.all(
      [...this.#running].map(([request, running]) => endsInTime(request, running)),
    );
    const inTime = ended.every(Boolean);
    await Promise.all(this.#started.map((thread) => (inTime ? thread.close() : thread.destroy())));
  }
}

type Thread = Piscina<unknown, WorkerReply>;

interface RunningRequest {
  readonly thread: Thread;
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
