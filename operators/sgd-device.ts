import { computeDevice, hostDevice } from '../engine/devices.ts';
import type { Device, Executor } from '../engine/executor.ts';
import type { SgdParams } from './sgd-params.ts';

/** Schedules that a GPU has; blocks want threads that wait for each other's. */
const gpuSchedules: readonly string[] = ['auto', 'tile', 'hogwild', 'wavefront'];

/** Where SGD steps: the GPU where there is one and the schedule is one of its own. */
export function sgdDevice(executor: Executor, { schedule }: Pick<SgdParams, 'schedule'>): Device {
  return gpuSchedules.includes(schedule) ? computeDevice(executor) : hostDevice(executor);
}

/** The devices of a run of SGD, the one that steps among them as the one that computes. */
export function sgdExecutor(executor: Executor, params: Pick<SgdParams, 'schedule'>): Executor {
  const host = hostDevice(executor);
  return sgdDevice(executor, params) === host ? { devices: [host], close: () => executor.close() } : executor;
}
