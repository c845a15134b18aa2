import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { buffersBeyondBinding, requireBindings, requireDeviceFit } from '../planner/sizes.ts';
import type { SgdParams } from './params.ts';
import { planOfSchedule } from './plan-of-schedule.ts';
import { type SgdPlanDetails, type SgdProblem, sgdProblem } from './problem.ts';
import { devicesOf } from './schedules/blocks-schedule.ts';
import { schedulesFor } from './schedules/choose-schedule.ts';
import { beyondBlock, type SgdSchedule } from './schedules/schedule.ts';

/**
 * Makes the physical plan of SGD: a pure function of profile, parameters and devices. It takes the first
 * schedule, in the order of schedulesFor, that fits into memory. Throws CapacityError if none does.
 */
export function planSgd(
  profile: RatingsProfile,
  params: SgdParams,
  { compute, host }: PlanDevices,
  details: SgdPlanDetails = {},
): PhysicalPlan {
  const rejected: string[] = [];
  let last: { readonly problem: SgdProblem; readonly plan: PhysicalPlan } | undefined;
  let tooLarge: string | undefined;
  for (const schedule of details.schedule ? [details.schedule] : schedulesFor(profile, params, compute)) {
    let reason = beyondBlock(schedule, profile.ratings);
    if (reason === undefined) {
      const devices = compute.slice(0, devicesOf(schedule));
      const problem = sgdProblem({ profile, params, schedule, details, compute: devices, host });
      last = { problem, plan: planOfSchedule(problem, rejected) };
      reason = lackOf(last.plan, largestBuffer(problem));
      if (reason === undefined) return last.plan;
    } else {
      tooLarge ??= `schedule ${schedule.kind} ${reason}`;
    }
    rejected.push(`rejected: ${nameOf(schedule)} ${reason}`);
  }
  if (last !== undefined) return requireFit(last.problem, last.plan);
  if (tooLarge === undefined) throw new Error('no schedule suits these devices');
  const advice =
    compute.length > 1 ? 'Use one device, more of them, or ALS' : 'Leave the schedule out, or use ALS';
  throw new CapacityError(tooLarge, { phase: 'plan', advice });
}

/** The schedule of a plan of SGD. */
export function scheduleOf({ choices }: Pick<PhysicalPlan, 'choices'>): SgdSchedule {
  return choices.schedule as unknown as SgdSchedule;
}

function nameOf({ kind, deviceBlocks, rowBands, columnBands }: SgdSchedule): string {
  if (deviceBlocks === undefined) return `schedule ${kind}`;
  const { bandsADevice, resident, rowsStaged } = deviceBlocks;
  const cut = bandsADevice === undefined ? `${columnBands} segments of columns` : `${rowBands} bands of rows`;
  const blocks = resident ? 'all blocks of ratings' : 'two blocks of ratings';
  return `${cut} with ${blocks}${rowsStaged ? ' and their factors' : ''} on the device`;
}

/** The reason why a plan does not fit into memory; undefined if it fits. */
function lackOf(plan: PhysicalPlan, largest: Readonly<Record<string, number>>): string | undefined {
  const [beyond] = buffersBeyondBinding(plan, largest);
  if (beyond !== undefined) {
    const { what, bytes, device } = beyond;
    return `needs ${formatBytes(bytes)} in one buffer for ${what}, and ${device.place} binds ${formatBytes(device.bindingBytes ?? 0)}`;
  }
  for (const { place, capacityBytes } of plan.devices) {
    const bytes = plan.memory[place] ?? 0;
    if (capacityBytes !== null && bytes > capacityBytes)
      return `needs ${formatBytes(bytes)} (${bytes} bytes), and ${place} has ${formatBytes(capacityBytes)} (${capacityBytes} bytes)`;
  }
  return undefined;
}

/** Returns the plan. Throws CapacityError if it does not fit. */
function requireFit(problem: SgdProblem, plan: PhysicalPlan): PhysicalPlan {
  const { deviceBlocks, precision } = problem.schedule;
  const smaller =
    precision === 'f16' ? 'precision f32, which keeps no copies of half the width' : 'a part of the ratings';
  requireDeviceFit(
    plan,
    deviceBlocks === undefined ? 'leave the schedule out: blocks are staged where they do not fit' : smaller,
  );
  requireBindings(plan, largestBuffer(problem));
  return plan;
}

/** Bytes of the largest buffer of ratings, by its description. */
function largestBuffer({ profile, schedule, layout }: SgdProblem): Readonly<Record<string, number>> {
  const parts = schedule.deviceBlocks ? schedule.rowBands * schedule.columnBands : 1;
  return { [`${formatCount(Math.ceil(profile.ratings / parts))} ratings`]: layout.bufferBytes };
}
