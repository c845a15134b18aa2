import { formatBytes } from '../../engine/format.ts';
import type { DeviceInfo } from '../../engine/executor.ts';
import { blocksSchedule } from './blocks-schedule.ts';
import { sgdBuffers, sgdDeviceBytes } from './bytes.ts';
import { gpuSchedule } from './gpu-schedule.ts';
import type { SgdParams } from './params.ts';
import { cpuSchedule, type ScheduleProblem, type SgdSchedule } from './schedule.ts';

/**
 * The schedule for a problem on a device, and for blocks on the `others` beside it too: a pure function of what is given. On GPUs
 * `auto` takes blocks where there are several, and on one where the other schedules do not fit it.
 */
export function chooseSchedule(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo, others: readonly DeviceInfo[] = []): SgdSchedule {
  if (device.kind === 'cpu') return cpuSchedule(problem, params, device);
  const devices = [device, ...others];
  if (params.schedule === 'blocks') return blocksSchedule(problem, params, devices, 'schedule blocks, as asked');
  if (params.schedule !== 'auto') return gpuSchedule(problem, params, device);
  if (others.length > 0) return blocksSchedule(problem, params, devices, `schedule auto: blocks, the one that ${devices.length} GPUs share`);
  const whole = gpuSchedule(problem, params, device);
  const lacking = whatLacks(problem, params, device, whole);
  return lacking === undefined ? whole : blocksSchedule(problem, params, devices, `schedule auto: blocks, since schedule ${whole.kind} ${lacking}`);
}

/** Why all ratings and factors at once do not fit the device; undefined where they do. */
function whatLacks(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo, schedule: SgdSchedule): string | undefined {
  const bytes = sgdDeviceBytes(problem, params, device, schedule);
  const { capacityBytes, bindingBytes = Number.POSITIVE_INFINITY } = device;
  if (capacityBytes !== null && bytes > capacityBytes) return `needs ${formatBytes(bytes)} (${bytes} bytes) and the GPU has ${formatBytes(capacityBytes)} (${capacityBytes} bytes)`;
  const large = Object.entries(sgdBuffers(problem, params, device, schedule)).find(([, size]) => size > bindingBytes);
  return large && `needs ${formatBytes(large[1])} in one buffer for ${large[0]} and the GPU binds ${formatBytes(bindingBytes)}`;
}
