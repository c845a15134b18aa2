import { Worker } from 'node:worker_threads';
import { CancelledError, missingFile } from '../../engine/errors.ts';
import { workerFile } from '../../engine/threads/worker-file.ts';
import type { FromStdin, StdinData, ToStdin } from './stdin-thread.ts';

/**
 * The bytes of stdin, read by a separate thread. That thread also ends the process when the parent has ended,
 * even while this thread is busy.
 */
export class ParentInput {
  readonly #thread: Worker;
  readonly #chunks: Uint8Array[] = [];
  #ended = false;
  #failure: unknown;
  #wake: (() => void) | undefined;

  /** `spillDir`: a folder for spilled data, whose files are also removed if the process is killed. */
  constructor(spillDir: string | undefined) {
    this.#thread = new Worker(workerFile(new URL('./stdin-thread.js', import.meta.url)), {
      workerData: { spillDir } satisfies StdinData,
    });
    this.#thread.on('message', (message: FromStdin) => {
      if ('bytes' in message) this.#chunks.push(message.bytes);
      else this.#ended = true;
      this.#wake?.();
    });
    this.#thread.on('error', (error) => {
      this.#failure = missingFile(error) ?? error;
      this.#wake?.();
    });
  }

  /**
   * The bytes to the end of stdin. Throws CancelledError once `signal` fires, even if the parent sends
   * nothing.
   */
  async *bytes(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    signal.addEventListener('abort', () => this.#wake?.(), { once: true });
    this.#send({ taken: 0 });
    for (;;) {
      if (signal.aborted) throw new CancelledError({ phase: 'read', cause: signal.reason });
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#send({ taken: chunk.length });
        yield chunk;
      } else if (this.#failure !== undefined) {
        throw this.#failure;
      } else if (this.#ended) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    }
  }

  /** Frees a chunk's memory now: garbage collection would be started by chunks that wait for it. */
  free(chunk: Uint8Array): void {
    (chunk.buffer as ArrayBuffer).transfer(0);
  }

  /** Gives the process more time to end by itself: all that the parent must receive has been sent. */
  ending(): void {
    this.#send({ ending: true });
  }

  /** Writes a zero byte to stderr at this interval, even while the main thread is busy. */
  beat(milliseconds: number): void {
    this.#send({ beat: milliseconds });
  }

  async close(): Promise<void> {
    await this.#thread.terminate();
  }

  #send(message: ToStdin): void {
    this.#thread.postMessage(message, []);
  }
}
