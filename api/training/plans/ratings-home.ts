import { CapacityError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { type AlsGrid, gridOf } from '../../../operators/als/plan/grid.ts';
import { blockLimit } from '../../../operators/planner/sizes.ts';
import { baseBytes, fitsBudget, leastBaseBytes, type MemoryBudget, requireBudget } from './memory-budget.ts';

/**
 * Numbers of ratings in one file, in the order in which they are tried: from the fastest to the smallest that
 * is worth a file.
 */
const PART_RATINGS = [22, 21, 20, 19, 18].map((bits) => 2 ** bits);

/** Further sizes, for a budget that is only slightly larger than the needs of the process itself. */
const TIGHT_RATINGS = [2 ** 19, 2 ** 18];

/** Parts end at slices of rows, so the largest may exceed the average by about this factor. */
const SLACK = 1.05;

/**
 * The place of ratings during training. In memory if the plan fits the budget, in several parts if one block
 * cannot hold them; else in parts in files of the spill folder.
 */
export type RatingsHome = { readonly plan: PhysicalPlan } & (
  | { readonly kind: 'memory' }
  | { readonly kind: 'parts'; readonly grid: AlsGrid }
  | { readonly kind: 'spill'; readonly partRatings: number }
);

/**
 * Chooses where ratings are stored, from the plans of `planOf`. Throws CapacityError with the minimum budget
 * if even small parts do not fit, or if ratings must stay in one block in memory (not `mayBeInParts`) and do
 * not fit.
 */
export function ratingsHome(
  mayBeInParts: boolean,
  planOf: (options: { readonly grid?: AlsGrid }) => PhysicalPlan,
  ratings: number,
  budget: MemoryBudget,
): RatingsHome {
  const plan = planOf({});
  if (!mayBeInParts) requireBudget(plan, budget);
  const inOneBlock = ratings <= blockLimit.ratings;
  if (!inOneBlock && !mayBeInParts)
    throw new CapacityError(
      `${formatCount(ratings)} ratings are more than the ${formatCount(blockLimit.ratings)} of a block in memory`,
      { phase: 'plan', advice: 'Train without keeping the ratings for further runs' },
    );
  if (fitsBudget(plan, budget))
    return inOneBlock ? { kind: 'memory', plan } : { kind: 'parts', plan, grid: gridOf(plan) };
  // With a single part the device would hold all ratings at once, so there are at least two.
  const inParts = (most: number) => {
    const parts = Math.max(2, Math.ceil(ratings / most));
    return {
      kind: 'spill',
      partRatings: Math.min(most, Math.ceil((SLACK * ratings) / parts)),
      plan: planOf({ grid: spillGrid(parts) }),
    } as const;
  };
  for (const [sizes, baseOf] of [
    [PART_RATINGS, baseBytes],
    [TIGHT_RATINGS, leastBaseBytes],
  ] as const) {
    for (const partRatings of sizes) {
      const home = inParts(partRatings);
      if (fitsBudget(home.plan, budget, baseOf)) return home;
    }
  }
  const least = inParts(TIGHT_RATINGS[TIGHT_RATINGS.length - 1]);
  requireBudget(least.plan, budget, leastBaseBytes);
  return least;
}

/**
 * The grid of the plan for ratings in files, which are sent to the device part by part. The arguments are the
 * numbers of files of each side.
 */
export function spillGrid(users: number, items = users): AlsGrid {
  const side = { fixed: 'whole', factors: 'device', ratings: 'spill' } as const;
  return { users: { ...side, q: users }, items: { ...side, q: items } };
}
