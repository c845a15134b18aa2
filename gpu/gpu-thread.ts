import { FactorFlowError, UsageError } from '../engine/errors.ts';
import { ThreadPool } from '../engine/threads/thread-pool.ts';
import { workerFile } from '../engine/threads/worker-file.ts';
import { keepDriverCache } from './probe/cache-folder.ts';
import type { GpuRequest } from './thread-requests.ts';
import type { AcquireOptions, GpuInfo } from './webgpu/gpu-info.ts';

/**
 * Most requests that the thread works on at the same time. While the GPU executes the kernels of one, the
 * thread prepares others and copies data from other devices.
 */
const REQUESTS = 64;

export interface GpuThreadOptions extends AcquireOptions {
  /** PCI address of the card; default: the first card of the system. */
  readonly card?: string;
  /** Bytes of the GPU's memory that may be used; WebGPU does not report its size. Default: no bound. */
  readonly memoryBytes?: number | undefined;
}

/**
 * A thread that opens a GPU and owns it. This module imports little, so that opening can start before the
 * rest of the program is loaded.
 */
export class GpuThread {
  readonly pool: ThreadPool;
  /**
   * Properties of the opened GPU. Rejects with a UsageError that has the reason if the GPU cannot be opened;
   * the thread has then ended.
   */
  readonly info: Promise<GpuInfo>;
  /** Makes the error for pending requests if the thread ends by itself. */
  crashed: (cause: unknown) => Error = cannotOpen;

  constructor({ card, ...options }: GpuThreadOptions) {
    keepDriverCache();
    this.pool = new ThreadPool(
      workerFile(new URL('./worker.js', import.meta.url)),
      1,
      {},
      { requests: REQUESTS, atomics: 'disabled', crashed: (cause) => this.crashed(cause) },
    );
    const request: GpuRequest = { changes: [], command: { type: 'open', options }, collection: 0 };
    const open = () => this.pool.run(() => request);
    this.info = (card === undefined ? open() : withCard(card, open)).then(
      ({ outcome }) => outcome.values as unknown as GpuInfo,
      async (cause: unknown) => {
        await this.pool.close();
        throw cause instanceof FactorFlowError ? cause : cannotOpen(cause);
      },
    );
    // Callers that await the promise get the error. If there are no such callers, this prevents an unhandled
    // rejection.
    this.info.catch(() => undefined);
  }
}

function cannotOpen(cause: unknown): UsageError {
  const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
  return new UsageError(`no GPU: it could not be opened (${reason})`, {
    advice: "Update the graphics card's driver, see factorflow doctor, or use device cpu",
    cause,
  });
}

/**
 * The last call's opening, for which the next call waits: DRI_PRIME belongs to the whole process, so only one
 * card can be opened at a time.
 */
let last: Promise<unknown> = Promise.resolve();

/**
 * Opens the card with this PCI address. WebGPU cannot choose between two equal cards, but Mesa's
 * device-select layer lists the card first whose address is in the environment variable DRI_PRIME. So the
 * variable has the address while `open` runs, and the GPU's thread reads it when it creates its WebGPU
 * instance.
 */
export function withCard<Opened>(address: string, open: () => Promise<Opened>): Promise<Opened> {
  const opening = last.then(async () => {
    const before = process.env.DRI_PRIME;
    process.env.DRI_PRIME = `pci-${address.replaceAll(/[:.]/g, '_')}`;
    try {
      return await open();
    } finally {
      if (before === undefined) delete process.env.DRI_PRIME;
      else process.env.DRI_PRIME = before;
    }
  });
  last = opening.catch(() => undefined);
  return opening;
}
