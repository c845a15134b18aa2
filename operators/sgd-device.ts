import { hostDevice } from '../engine/devices.ts';
import type { Device, Executor } from '../engine/executor.ts';

/** Where SGD steps. Only the CPU has the task sgd-block so far, so a session with a GPU runs SGD beside it. */
export function sgdDevice(executor: Executor): Device {
  return hostDevice(executor);
}
