import type { PlanDevices } from '../../engine/run/devices.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import type { AlsGrid } from '../../operators/als/plan/grid.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import type { RatingsProfile } from '../../operators/planner/profile.ts';
import { fitsBudget, leastBaseBytes, type MemoryBudget, requireBudget } from './memory-budget.ts';

/** Ratings of a part in files, from those that are read with the least overhead to the least that are worth a file. */
const PART_RATINGS = [22, 21, 20, 19, 18].map((bits) => 2 ** bits);

/** The home of ratings while they are trained on: memory where the plan fits the budget, else files of the spill folder in parts. */
export type RatingsHome = { readonly kind: 'memory' } | { readonly kind: 'spill'; readonly partRatings: number };

/** Chooses the home of ratings. Throws CapacityError with the least budget where even small parts do not fit. */
export function ratingsHome(profile: RatingsProfile, params: AlsParams, devices: PlanDevices, budget: MemoryBudget): RatingsHome {
  if (fitsBudget(planAls(profile, params, devices), budget)) return { kind: 'memory' };
  const planned = PART_RATINGS.map((partRatings) => ({ partRatings, plan: planAls(profile, params, devices, undefined, { grid: spillGrid(Math.max(2, Math.ceil(profile.ratings / partRatings))) }) }));
  const found = planned.find(({ plan }) => fitsBudget(plan, budget));
  const least = planned[planned.length - 1];
  if (found === undefined) requireBudget(least.plan, budget, leastBaseBytes);
  return { kind: 'spill', partRatings: (found ?? least).partRatings };
}

/** Ratings by either side in so many files, staged part by part. */
export function spillGrid(users: number, items = users): AlsGrid {
  const side = { fixed: 'whole', factors: 'device', ratings: 'spill' } as const;
  return { users: { ...side, q: users }, items: { ...side, q: items } };
}
