import { availableParallelism } from 'node:os';
import type { Device } from '../../engine/run/device.ts';
import type { TaskResult } from '../../engine/task.ts';
import type { CheckKernelsTask } from '../../gpu/handler.ts';
import { gpusOfThisMachine, OpeningDevices } from './open-devices.ts';

export type CheckedGpu = Pick<Device, 'info' | 'run'>;

export type CheckOutcome = Omit<TaskResult, 'values'> & { readonly values: CheckKernelsTask['values'] };

/** Runs one check of the GPU's kernels by its number, or lists the checks; see CheckKernelsTask. */
export async function runCheck(gpu: CheckedGpu, check?: number): Promise<CheckOutcome> {
  const params: CheckKernelsTask['params'] = check === undefined ? {} : { check };
  const result = await gpu.run({ kernel: 'check-kernels', inputs: {}, outputs: {}, params });
  return { ...result, values: result.values as CheckKernelsTask['values'] };
}

/** The devices of one card. */
export interface CheckedCard {
  readonly gpu: CheckedGpu;
  /** Most devices that should run checks at the same time. */
  readonly most: number;
  /** Opens another device of the same card. */
  open(number: number): Promise<CheckedGpu>;
}

/**
 * Each device of a graphics card takes some hundred MiB of its memory, so at most this number is opened on
 * one card.
 */
const MOST_DEVICES = 12;

/**
 * Opens the default GPU of WebGPU, which can be a software GPU. Throws UsageError with advice if there is
 * none; CancelledError.
 */
export async function openCard(
  workers: number | undefined,
  signal: AbortSignal,
): Promise<CheckedCard & { readonly close: () => Promise<void> }> {
  const first = new OpeningDevices({ device: 'gpu', workers: 1, signal });
  const { devices, device } = await first.all().catch(async (error: unknown) => {
    await first.close();
    throw error;
  });
  const gpu = devices.find(({ info }) => info.kind === 'gpu');
  if (gpu === undefined) throw new Error('there is no GPU among the devices that were opened');
  const opened: Device[] = [];
  const opening = new Set<Promise<Device>>();
  return {
    gpu,
    most: workers ?? devicesFor(availableParallelism(), device.warning !== undefined),
    open: async (number) => {
      const another = gpusOfThisMachine.open({ place: `gpu:${number}` });
      opening.add(another);
      const open = await another;
      opened.push(open);
      return open;
    },
    close: async () => {
      await Promise.allSettled(opening);
      await Promise.all([first, ...opened].map((one) => one.close()));
    },
  };
}

/**
 * Number of devices on which kernels are checked at the same time. A software adapter computes on the
 * processor's cores itself, so it gets fewer.
 */
export function devicesFor(cores: number, software: boolean): number {
  return Math.min(MOST_DEVICES, Math.max(1, Math.floor(cores * (software ? 0.5 : 0.75))));
}
