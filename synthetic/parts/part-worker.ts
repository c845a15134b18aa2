import { workerData } from 'node:worker_threads';
import { serializeError } from '../../engine/errors.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import { sharedClock } from '../../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../../engine/threads/thread-pool.ts';
import type { PartWorkerData } from './part-tasks.ts';

/**
 * The data that the pool was created with. Piscina passes [its own data, this] if ports are used, else only
 * this.
 */
export function ownWorkerData<Data>(): Data {
  return (Array.isArray(workerData) ? workerData.at(-1) : workerData) as Data;
}

/**
 * The function that a worker's entry file exports. `work` receives a request and the `stop` of
 * writePartFiles, which counts rows for the main thread and returns true after a cancel.
 */
export function partWorker<Request>(
  work: (request: Request, stop: (rows: number) => boolean) => Promise<TaskOutcome>,
) {
  const { written, flags } = ownWorkerData<PartWorkerData & { readonly flags: Int32Array }>();
  return async ({ slot, request }: { slot: number; request: Request }): Promise<WorkerReply> => {
    const start = sharedClock();
    const stop = (rows: number) => {
      if (rows > 0) Atomics.add(written, 0, BigInt(rows));
      return Atomics.load(flags, slot) !== 0;
    };
    try {
      const outcome = await work(request, stop);
      return { outcome, start, milliseconds: sharedClock() - start };
    } catch (error) {
      return { error: serializeError(error) };
    }
  };
}
