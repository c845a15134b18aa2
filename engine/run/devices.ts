import { DeviceLostError, UsageError } from '../errors.ts';
import type { Device, Executor } from './device.ts';
import type { DeviceInfo } from '../plan/device-info.ts';
import { type PhysicalPlan, stageNamed } from '../plan/physical-plan.ts';
import { HOST, type Place, SPILL } from '../plan/place.ts';

export function deviceAt({ devices, memory, spilled }: Executor, place: Place): Device {
  if (place === HOST) return memory;
  if (place === SPILL && spilled !== undefined) return spilled;
  const found = devices.find(({ info }) => info.place === place);
  if (found === undefined) throw new Error(`this executor has no device ${place}`);
  return found;
}

/** The devices that hold factors and run the heavy tasks: all GPUs if there are any, else all CPU devices. */
export function computeDevices({ devices }: Executor): readonly Device[] {
  const gpus = devices.filter(({ info }) => info.kind === 'gpu');
  const found = gpus.length > 0 ? gpus : devices;
  if (found.length === 0) throw noDevices();
  return found;
}

export function computeDevice(executor: Executor): Device {
  return computeDevices(executor)[0];
}

/**
 * The place where rows are numbered and sorted: the first CPU device, whose partitions are in host memory.
 */
export function hostDevice({ devices }: Pick<Executor, 'devices'>): Device {
  const found = devices.find(({ info }) => info.kind === 'cpu');
  if (found === undefined) throw noDevices();
  return found;
}

/** The user may choose a session without devices. */
function noDevices(): UsageError {
  return new UsageError('this session has no devices', {
    advice: 'Open one that computes with Session.create()',
  });
}

/**
 * The devices that a planner must know: the computing devices, and the CPU device on which data are loaded.
 */
export interface PlanDevices {
  readonly compute: readonly DeviceInfo[];
  readonly host: DeviceInfo;
}

export function planDevices(executor: Executor): PlanDevices {
  return { compute: computeDevices(executor).map(({ info }) => info), host: hostDevice(executor).info };
}

/** The devices on which a stage of a plan runs. */
export function computingOf(
  plan: PhysicalPlan,
  { compute }: PlanDevices,
  stage: string,
): readonly DeviceInfo[] {
  const { at } = stageNamed(plan, stage);
  return compute.filter(({ place }) => at.includes(place));
}

/**
 * Returns the error to report: a lost device whose error does not name it gets the name of `place`; other
 * errors are not changed.
 */
export function lostAt(error: unknown, place: Place): unknown {
  return error instanceof DeviceLostError && error.details.device === undefined
    ? new DeviceLostError(error.summary, { ...error.details, device: place })
    : error;
}
