import { deserializeError, type SerializedError } from '../engine/errors.ts';
import type { TaskOutcome } from '../engine/task.ts';
import type { TaskRequest } from '../cpu/task-scope.ts';

/** The memory and kernels that the threads of a page share. */
export interface ThreadMemory {
  readonly memory: WebAssembly.Memory;
  readonly compiled: WebAssembly.Module;
}

export type ThreadMessage =
  | (ThreadMemory & { readonly flags: Int32Array })
  | { readonly request: TaskRequest; readonly slot: number };

export type ThreadAnswer = 'ready' | { readonly outcome: TaskOutcome } | { readonly error: SerializedError };

/** Most threads by default: more gain little for the sizes that a page trains on. */
const MOST_THREADS = 8;

/** The threads that a training uses by default: one where the page has no shared memory. */
export function defaultThreads(): number {
  const { crossOriginIsolated, navigator } = globalThis as {
    readonly crossOriginIsolated?: boolean;
    readonly navigator?: { readonly hardwareConcurrency?: number };
  };
  if (crossOriginIsolated !== true) return 1;
  return Math.min(MOST_THREADS, navigator?.hardwareConcurrency ?? 1);
}

/** Web workers that run tasks; each runs one at a time, and further tasks wait in order. */
export class PageThreads {
  readonly #workers: readonly Worker[];
  /** `flags[slot]` is not 0 once the task of worker `slot` is cancelled. */
  readonly #flags: Int32Array;
  readonly #free: number[];
  readonly #waiting: ((slot: number) => void)[] = [];

  private constructor(workers: readonly Worker[], flags: Int32Array) {
    [this.#workers, this.#flags] = [workers, flags];
    this.#free = workers.map((_, slot) => slot);
  }

  /**
   * Starts threads. Undefined if the browser cannot load page-worker.js, for example because it was not
   * copied to the server.
   */
  static async open(count: number, memory: ThreadMemory): Promise<PageThreads | undefined> {
    const flags = new Int32Array(new SharedArrayBuffer(4 * count));
    const workers: Worker[] = [];
    try {
      for (let slot = 0; slot < count; slot++)
        workers.push(new Worker(new URL('./page-worker.js', import.meta.url), { type: 'module' }));
      await Promise.all(workers.map((worker) => answerOf(worker, { ...memory, flags })));
      return new PageThreads(workers, flags);
    } catch {
      for (const worker of workers) worker.terminate();
      return undefined;
    }
  }

  /** `requestOf` makes the request for the thread that takes it. */
  async run(requestOf: (slot: number) => TaskRequest, signal?: AbortSignal): Promise<TaskOutcome> {
    const slot = this.#free.pop() ?? (await new Promise<number>((take) => this.#waiting.push(take)));
    const cancel = () => void Atomics.store(this.#flags, slot, 1);
    Atomics.store(this.#flags, slot, signal?.aborted ? 1 : 0);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const answer = await answerOf(this.#workers[slot], { request: requestOf(slot), slot });
      if (answer === 'ready') throw new Error('a thread answered without a task');
      if ('error' in answer) throw deserializeError(answer.error);
      return answer.outcome;
    } finally {
      signal?.removeEventListener('abort', cancel);
      const next = this.#waiting.shift();
      if (next) next(slot);
      else this.#free.push(slot);
    }
  }

  close(): void {
    for (const worker of this.#workers) worker.terminate();
  }
}

/** Sends a message to a worker that has no other task, and awaits its answer. */
async function answerOf(worker: Worker, message: ThreadMessage): Promise<ThreadAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<ThreadAnswer>();
  const answered = new AbortController();
  const { signal } = answered;
  worker.addEventListener('message', ({ data }: MessageEvent<ThreadAnswer>) => resolve(data), { signal });
  worker.addEventListener(
    'error',
    ({ message: reason }: ErrorEvent) => reject(new Error(`a thread of the page failed: ${reason}`)),
    { signal },
  );
  // Nothing is transferred: the data are copied or shared.
  worker.postMessage(message, []);
  return promise.finally(() => answered.abort());
}
