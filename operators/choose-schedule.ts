import type { DevicePlan } from '../engine/physical-plan.ts';
import { gpuSchedule } from './sgd-gpu-schedule.ts';
import type { SgdParams } from './sgd-params.ts';
import { cpuSchedule, type ScheduleProblem, type SgdSchedule } from './sgd-schedule.ts';

/** The schedule for a problem on a device: a pure function of what is given. */
export function chooseSchedule(problem: ScheduleProblem, params: SgdParams, device: DevicePlan): SgdSchedule {
  return device.kind === 'gpu' ? gpuSchedule(problem, params, device) : cpuSchedule(problem, params, device);
}
