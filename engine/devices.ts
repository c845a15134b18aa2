import type { Device, Executor } from './executor.ts';

/** Where factors live and the heavy tasks run: the GPU where there is one, else the CPU. */
export function computeDevice({ devices }: Executor): Device {
  const found = devices.find(({ kind }) => kind === 'gpu') ?? devices[0];
  if (found === undefined) throw new Error('this executor has no devices');
  return found;
}

/** All devices of the kind that computes: every GPU where there is one, else the CPU. */
export function computeDevices(executor: Executor): readonly Device[] {
  const gpus = executor.devices.filter(({ kind }) => kind === 'gpu');
  return gpus.length > 0 ? gpus : [computeDevice(executor)];
}

/** Where rows are numbered and sorted: the CPU, which is always there. Its partitions are host memory. */
export function hostDevice({ devices }: Executor): Device {
  const found = devices.find(({ kind }) => kind === 'cpu');
  if (found === undefined) throw new Error('this executor has no CPU device');
  return found;
}
