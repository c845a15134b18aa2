import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { AlsParams } from '../params.ts';
import { askedPartitions } from '../partitions.ts';
import { suits, usualGrid } from './grid.ts';
import { planOfGrid } from './plan-of-grid.ts';
import type { AlsPlanOptions } from './problem.ts';

/**
 * The physical plan of ALS: a pure function of profile, parameters and devices. Throws CapacityError when it does not fit, before
 * anything is allocated.
 */
export function planAls(profile: RatingsProfile, params: AlsParams, devices: PlanDevices, choices?: AlsChoices, options: AlsPlanOptions = {}): PhysicalPlan {
  const asked = askedPartitions(params);
  const usual = usualGrid(devices.compute.length);
  if (options.grid === undefined && !suits(usual, asked)) {
    const users = asked.users ?? { p: 1, q: asked.items && asked.items.p > 1 ? asked.items.p : usual.users.q };
    const items = asked.items ?? { p: 1, q: users.p > 1 ? users.p : usual.items.q };
    const grid = { users: { ...usual.users, q: users.q, fixed: items.p > 1 ? 'parts' : 'whole' }, items: { ...usual.items, q: items.q, fixed: users.p > 1 ? 'parts' : 'whole' } } as const;
    return planOfGrid(profile, params, devices, choices, { ...options, grid });
  }
  return planOfGrid(profile, params, devices, choices, options);
}
