import { DeviceLostError, throwIfAborted } from '../engine/errors.ts';
import type { ThreadOutcome } from '../engine/threads/thread-pool.ts';
import type { OpenedGpu } from '../gpu/opened-gpu.ts';
import type { GpuRequest, RequestPool } from '../gpu/thread-requests.ts';
import { Turns } from '../gpu/turns.ts';

/** Executes requests to a GPU in the thread that makes them; in Node a GPU has a thread of its own. */
export class PageGpuRequests implements RequestPool {
  readonly #opened: OpenedGpu;
  readonly #turns = new Turns();
  /** For each running request, the flag that cancels it: see RequestPlace. */
  readonly #running = new Set<Int32Array>();

  constructor(opened: OpenedGpu) {
    this.#opened = opened;
  }

  async run(makeRequest: () => GpuRequest, signal?: AbortSignal): Promise<ThreadOutcome> {
    throwIfAborted(signal);
    const request = makeRequest();
    const flags = new Int32Array(1);
    const cancel = () => flags.fill(1);
    this.#running.add(flags);
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      const answer = await this.#turns.run((pass) => this.#execute(request, flags, pass));
      throwIfAborted(signal);
      return answer;
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.#running.delete(flags);
    }
  }

  async #execute(request: GpuRequest, flags: Int32Array, pass: () => void): Promise<ThreadOutcome> {
    const { command } = request;
    if (command.type === 'open') throw new Error('the GPU of a page is open already');
    const start = performance.now();
    try {
      const place = { slot: 0, flags, turns: this.#turns, pass };
      const outcome = await this.#opened.execute(request, command, place);
      return { outcome, start, milliseconds: performance.now() - start };
    } catch (error) {
      // Once the device is lost, all other errors follow from it.
      if (!(error instanceof DeviceLostError)) this.#opened.requireDevice();
      throw error;
    }
  }

  returnEarly(): void {
    for (const flags of this.#running) flags.fill(1);
  }

  async close(): Promise<void> {}
}
