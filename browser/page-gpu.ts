import { DeviceLostError, throwIfAborted } from '../engine/errors.ts';
import { sharedArray } from '../engine/partition.ts';
import type { ThreadOutcome } from '../engine/threads/thread-pool.ts';
import { addRows, placeRows, copyRows } from '../gpu/copies/place-rows.task.ts';
import { upload } from '../gpu/copies/upload.task.ts';
import { GpuDevice } from '../gpu/device.ts';
import { normalEquations } from '../gpu/equations/normal-equations.task.ts';
import { solveEquations } from '../gpu/equations/solve-equations.task.ts';
import { gram } from '../gpu/implicit/gram.task.ts';
import { implicitError } from '../gpu/implicit/implicit-error.task.ts';
import { squaredError } from '../gpu/loss/squared-error.task.ts';
import { weightedNorm } from '../gpu/loss/weighted-norm.task.ts';
import { OpenedGpu } from '../gpu/opened-gpu.ts';
import { type GpuHandlers, handleBy } from '../gpu/registry.ts';
import { topN } from '../gpu/serving/top-n.task.ts';
import type { GpuRequest } from '../gpu/thread-requests.ts';
import type { RequestPool } from '../gpu/thread-requests.ts';
import { Turns } from '../gpu/turns.ts';
import { compileAhead } from '../gpu/update/compile-update.task.ts';
import { update, updateImplicit } from '../gpu/update/update.task.ts';
import type { GpuHost } from '../gpu/webgpu/host.ts';
import { openAdapter } from '../gpu/webgpu/open-adapter.ts';

export { GpuSearches } from './gpu-searches.ts';

/** The tasks of training by ALS and of recommendations on one GPU. */
const handlers: GpuHandlers = {
  upload,
  update,
  gram,
  'add-rows': addRows,
  'copy-rows': copyRows,
  'place-rows': placeRows,
  'normal-equations': normalEquations,
  'solve-equations': solveEquations,
  'update-implicit': updateImplicit,
  'implicit-error': implicitError,
  'squared-error': squaredError,
  'weighted-norm': weightedNorm,
  'compile-update': compileAhead,
  'top-n': topN,
};

const oneGpu = () => Promise.reject(new Error('a page has one GPU, and exchanges no data between GPUs'));

const pageHost: GpuHost = {
  pieces: { write: oneGpu, read: oneGpu, ended: async () => {} },
  awaitedValues: (length) => ({ values: sharedArray(Float32Array, length), ready: async () => {} }),
  collectGarbage: () => {},
};

/**
 * Opens the page's GPU, in the thread that calls this. Undefined if the browser has no WebGPU, or gives the
 * page no adapter. `software`: false to also return undefined for an adapter that computes on the processor.
 */
export async function openPageGpu({
  software,
}: {
  readonly software: boolean;
}): Promise<GpuDevice | undefined> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  const instance = navigator?.gpu;
  const adapter = await instance?.requestAdapter({ powerPreference: 'high-performance' });
  if (!instance || !adapter) return undefined;
  // These features are part of WebGPU; the experimental one of matrices, which Node uses, is not.
  const acquired = await openAdapter({ instance, adapter, host: pageHost }, ['shader-f16', 'subgroups']);
  if (acquired.info.software && !software) {
    acquired.device.destroy();
    return undefined;
  }
  const requests = new PageGpuRequests(new OpenedGpu(acquired, handleBy(handlers), undefined));
  const tunedKernels = { find: async () => undefined, keep: async () => undefined };
  return new GpuDevice(requests, acquired.info, { tunedKernels });
}

/** Executes requests to a GPU in the thread that makes them; in Node a GPU has a thread of its own. */
class PageGpuRequests implements RequestPool {
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
