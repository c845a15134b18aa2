import type { PlanDevices } from '../../engine/run/devices.ts';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { buffersBeyondBinding, fits, requireBindings, requireDeviceFit } from '../planner/sizes.ts';
import { layoutOf } from './bytes.ts';
import type { SgdParams } from './params.ts';
import { planOfSchedule, type SgdPlanDetails } from './plan-of-schedule.ts';
import { lack, nameOf } from './plan-text.ts';
import { devicesOf } from './schedules/blocks-schedule.ts';
import { schedulesFor } from './schedules/choose-schedule.ts';
import { beyondBlock, type SgdSchedule } from './schedules/schedule.ts';

/**
 * The physical plan of SGD: a pure function of profile, parameters and devices. Of the schedules that suit
 * them the first that fits is taken. An epoch steps a copy of the factors, so two versions of both sides
 * stand side by side, three with an early stop, or where an epoch is sent on speculation. Throws
 * CapacityError when none fits.
 *
 */
export function planSgd(
  profile: RatingsProfile,
  params: SgdParams,
  { compute, host }: PlanDevices,
  details: SgdPlanDetails = {},
): PhysicalPlan {
  const rejected: string[] = [];
  let last: PhysicalPlan | undefined;
  let tooLarge: string | undefined;
  for (const schedule of details.schedule ? [details.schedule] : schedulesFor(profile, params, compute)) {
    const refused = beyondBlock(schedule, profile.ratings);
    if (refused !== undefined) {
      tooLarge ??= `schedule ${schedule.kind} ${refused}`;
      rejected.push(`rejected: ${nameOf(schedule)} ${refused}`);
      continue;
    }
    const devices = { compute: compute.slice(0, devicesOf(schedule)), host };
    last = planOfSchedule(profile, params, schedule, devices, details, rejected);
    const missing = missingOn(last, largestBuffer(profile, schedule));
    if (missing === undefined) return last;
    rejected.push(`rejected: ${nameOf(schedule)} ${missing}`);
  }
  if (last === undefined) throw noneSuits(tooLarge, compute.length);
  const schedule = scheduleOf(last);
  requireDeviceFit(last, adviceFor(schedule));
  requireBindings(last, largestBuffer(profile, schedule));
  return last;
}

/** The schedule that a plan of SGD was made with. */
export function scheduleOf({ choices }: Pick<PhysicalPlan, 'choices'>): SgdSchedule {
  return choices.schedule as unknown as SgdSchedule;
}

/** What a plan needs and its devices lack, or undefined where it fits. */
function missingOn(plan: PhysicalPlan, largest: Readonly<Record<string, number>>): string | undefined {
  const [beyond] = buffersBeyondBinding(plan, largest);
  if (beyond !== undefined)
    return `needs ${formatBytes(beyond.bytes)} in one buffer for ${beyond.what}, and ${beyond.device.place} binds ${formatBytes(beyond.device.bindingBytes ?? 0)}`;
  return fits(plan) ? undefined : lack(plan);
}

function noneSuits(tooLarge: string | undefined, devices: number): Error {
  if (tooLarge === undefined) return new Error('no schedule suits these devices');
  return new CapacityError(tooLarge, {
    phase: 'plan',
    advice: devices > 1 ? 'Use one device, more of them, or ALS' : 'Leave the schedule out, or use ALS',
  });
}

function adviceFor({ deviceBlocks, precision }: SgdSchedule): string {
  if (deviceBlocks === undefined) return 'leave the schedule out: blocks are staged where they do not fit';
  return precision === 'f16'
    ? 'precision f32, which keeps no copies of half the width'
    : 'a part of the ratings';
}

function largestBuffer(
  { users, items, ratings }: RatingsProfile,
  schedule: SgdSchedule,
): Readonly<Record<string, number>> {
  const parts = schedule.deviceBlocks ? schedule.rowBands * schedule.columnBands : 1;
  return {
    [`${formatCount(Math.ceil(ratings / parts))} ratings`]: layoutOf(
      schedule,
      ratings,
      Math.max(users, items),
    ).bufferBytes,
  };
}
