/**
 * Entry of the thread that owns one GPU: it keeps the device, its buffers and its compiled kernels from task
 * to task.
 */
import { setImmediate } from 'node:timers/promises';
import { workerData } from 'node:worker_threads';
import { DeviceLostError, serializeError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { TaskOutcome } from '../engine/task.ts';
import { sharedClock } from '../engine/threads/shared-clock.ts';
import type { WorkerReply } from '../engine/threads/thread-pool.ts';
import type { OpenedGpu } from './opened-gpu.ts';
import type { GpuRequest } from './thread-requests.ts';
import { Turns } from './turns.ts';
import { acquireGpu } from './webgpu/acquire.ts';

/**
 * The thread pool (the package piscina) passes [its own data, our data] if message ports are in use, else
 * only our data.
 */
const { flags } = (Array.isArray(workerData) ? workerData.at(-1) : workerData) as {
  readonly flags: Int32Array;
};

const turns = new Turns();
let opened: Promise<OpenedGpu> | undefined;

export default function answer({
  slot,
  request,
}: {
  readonly slot: number;
  readonly request: GpuRequest;
}): Promise<WorkerReply> {
  return turns.run(async (pass) => {
    const start = sharedClock();
    try {
      const outcome = await execute(request, slot, pass);
      return { outcome, start, milliseconds: sharedClock() - start };
    } catch (error) {
      return { error: serializeError(await causeOf(error)) };
    }
  });
}

async function execute(request: GpuRequest, slot: number, pass: () => void): Promise<TaskOutcome> {
  const { command } = request;
  if (command.type === 'open') {
    const { memoryBytes, ...options } = command.options;
    const acquired = await acquireGpu(options);
    // Kernels and tasks are loaded after the answer has been sent, while the calling thread processes it.
    opened = setImmediate().then(async () =>
      (await import('./open-in-thread.ts')).openInThread(acquired, memoryBytes),
    );
    return { rows: 0, values: { ...acquired.info } as unknown as JsonObject };
  }
  if (opened === undefined)
    throw new DeviceLostError('the thread of the GPU ended, and what it held is gone', { phase: 'gpu' });
  if (command.type === 'lose' && command.what === 'thread') process.exit(1);
  return (await opened).execute(request, command, { slot, flags, turns, pass });
}

/** The error to report. Once the device is lost, that is the loss, since all other errors follow from it. */
async function causeOf(error: unknown): Promise<unknown> {
  if (opened === undefined || error instanceof DeviceLostError) return error;
  await setImmediate();
  try {
    (await opened).requireDevice();
    return error;
  } catch (lost) {
    return lost;
  }
}
