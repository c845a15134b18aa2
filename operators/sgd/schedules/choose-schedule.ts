import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import { blocksSchedule, LEAST_SEGMENTS, MOST_SEGMENTS, PASSED_A_DEVICE, SEGMENTS_A_DEVICE } from './blocks-schedule.ts';
import { reasonForOne, sharedSeconds } from './device-count.ts';
import { gpuSchedule } from './gpu-schedule.ts';
import type { SgdParams } from '../params.ts';
import { cpuSchedule, type ScheduleProblem, type SgdSchedule } from './schedule.ts';

/**
 * The schedules for a problem on these devices, the best first; the caller takes the first that fits. A pure function. `auto`
 * takes one of several GPUs where their exchange would take longer than the steps that it saves, else blocks on all of them, and blocks on one GPU where the other schedules do not fit. Blocks that do not all fit are staged; with
 * less memory there are more and smaller blocks.
 */
export function* schedulesFor(problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[]): Generator<SgdSchedule> {
  const [device] = devices;
  const several = devices.length > 1;
  if (device.kind === 'cpu' && !several) return yield cpuSchedule(problem, params, device);
  if (params.schedule !== 'blocks' && (params.schedule !== 'auto' || !several)) {
    const whole = device.kind === 'cpu' ? cpuSchedule(problem, params, device) : gpuSchedule(problem, params, device);
    yield whole;
    if (params.schedule !== 'auto') return;
    yield* blocks(problem, params, devices, `schedule auto: blocks, since schedule ${whole.kind} does not fit the GPU`);
    return;
  }
  if (params.schedule === 'auto' && device.kind === 'gpu') {
    const one = gpuSchedule(problem, params, device);
    const [shared] = blocks(problem, params, devices, '');
    const reason = reasonForOne(problem, params, devices, shared);
    if (reason !== undefined) yield { ...one, reasons: [...one.reasons, reason] };
  }
  yield* blocks(problem, params, devices, params.schedule === 'blocks' ? 'schedule blocks, as asked' : `schedule auto: blocks, the one that ${devices.length} devices share`);
}

function* blocks(problem: ScheduleProblem, params: SgdParams, devices: readonly DeviceInfo[], why: string): Generator<SgdSchedule> {
  const columns = Math.min(problem.users, problem.items);
  const [device] = devices;
  const most = Math.max(1, Math.min(columns, MOST_SEGMENTS));
  const least = Math.min(most, Math.max(LEAST_SEGMENTS, SEGMENTS_A_DEVICE * devices.length));
  for (let segments = least; ; segments = Math.min(most, 2 * segments)) {
    // Narrower segments make little room for all blocks.
    if (segments === least) yield fastest(problem, params, device, PASSED_A_DEVICE.map((each) => blocksSchedule(problem, params, devices, why, Math.min(most, Math.max(LEAST_SEGMENTS, each * devices.length)), true)));
    yield blocksSchedule(problem, params, devices, why, segments, false);
    if (segments === most) return;
  }
}

function fastest(problem: ScheduleProblem, params: SgdParams, device: DeviceInfo, schedules: readonly SgdSchedule[]): SgdSchedule {
  const seconds = schedules.map((schedule) => sharedSeconds(problem, params, device, schedule));
  return schedules[seconds.indexOf(Math.min(...seconds))];
}
