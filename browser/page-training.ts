import { checkRunOptions } from '../api/check-options.ts';
import type { RunOptions } from '../api/run-session.ts';
import { handlers } from '../cpu/generated/tasks.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { oneOf } from '../engine/nearest.ts';
import type { ExecutionContext } from '../engine/run/context.ts';
import type { Device } from '../engine/run/device.ts';
import { Holdings } from '../engine/run/holdings.ts';
import type { TrainingIteration } from '../operators/training/training.ts';
import { pageDevices, noWebGpu, type PageDeviceName } from './device-choice.ts';
import { PageModel } from './page-model.ts';
import { PageSession } from './page-session.ts';
import { loadWebGpu, webGpu } from './web-gpu.ts';

/** A model that a page has trained, and its course. */
export interface PageTraining {
  readonly model: PageModel;
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  /** Test ratings of users or items without training ratings, which are left out. */
  readonly coldPairs: number;
  readonly seconds: number;
  /** The device that trained. */
  readonly device: string;
}

/** A training that has ended: its course, the name of its device, and the parts of its model. */
export interface EndedFit {
  readonly course: Pick<PageTraining, 'iterations' | 'bestIteration' | 'coldPairs'>;
  readonly device: string;
  readonly parts: ConstructorParameters<typeof PageModel>[0];
}

export interface TrainingRun extends RunOptions {
  readonly device: PageDeviceName;
  readonly threads: number;
}

/** Runs a training in a session of its own, which the model then uses. Throws UsageError for wrong options. */
export async function runTraining(
  method: string,
  { signal, onEvent, device, threads }: TrainingRun,
  fit: (ctx: ExecutionContext) => Promise<EndedFit>,
): Promise<PageTraining> {
  checkRunOptions(method, { signal, onEvent });
  if (!Number.isInteger(threads) || threads < 1)
    throw new UsageError(`threads must be a whole number of at least 1, got ${shown(threads)}`);
  const session = await PageSession.open(handlers, threads);
  let gpu: Device | undefined;
  try {
    gpu = await gpuFor(device);
    const started = performance.now();
    const ended = await Holdings.within(session.requestContext({ signal, onEvent }, gpu), fit);
    const seconds = (performance.now() - started) / 1000;
    const model = new PageModel(ended.parts, session, { webGpu });
    return { ...ended.course, seconds, device: ended.device, model };
  } catch (error) {
    await session.close();
    throw error;
  } finally {
    session.endThreads();
    await gpu?.close();
  }
}

/** The page's GPU, if it is asked for. Its code is loaded with it. */
async function gpuFor(device: PageDeviceName): Promise<Device | undefined> {
  oneOf('device', device, pageDevices);
  if (device === 'cpu') return undefined;
  const { openPageGpu } = await loadWebGpu(webGpu);
  const gpu = await openPageGpu({ software: device === 'gpu' });
  if (gpu === undefined && device === 'gpu') throw noWebGpu();
  return gpu;
}
