import { CapacityError } from '../../../engine/errors.ts';
import { formatCount } from '../../../engine/format.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { type AlsGrid, gridOf } from '../../../operators/als/plan/grid.ts';
import { blockLimit } from '../../../operators/planner/sizes.ts';
import { baseBytes, fitsBudget, leastBaseBytes, type MemoryBudget, requireBudget } from './memory-budget.ts';

/**
 * Ratings of a part in files, from those that are read with the least overhead to the least that are worth a
 * file.
 */
const PART_RATINGS = [22, 21, 20, 19, 18].map((bits) => 2 ** bits);

/** Those of a budget that has little more than the process itself takes. */
const TIGHT_RATINGS = [2 ** 19, 2 ** 18];

/** Parts may be unequal by so much: they end where slices of rows do. */
const SLACK = 1.05;

/**
 * The home of ratings while they are trained on: memory where the plan fits the budget, in the parts of its
 * grid where one block does not have so many, else files of the spill folder in parts.
 */
export type RatingsHome = { readonly plan: PhysicalPlan } & (
  | { readonly kind: 'memory' }
  | { readonly kind: 'parts'; readonly grid: AlsGrid }
  | { readonly kind: 'spill'; readonly partRatings: number }
);

/**
 * Chooses the home of ratings by the plans that `planOf` makes. Throws CapacityError with the least budget
 * where even small parts do not fit, or where ratings must stay in one block in memory (not `mayBeInParts`)
 * and do not.
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
  // Two parts at least, or the device would hold all ratings at once.
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

/** Ratings by either side in so many files, staged part by part. */
export function spillGrid(users: number, items = users): AlsGrid {
  const side = { fixed: 'whole', factors: 'device', ratings: 'spill' } as const;
  return { users: { ...side, q: users }, items: { ...side, q: items } };
}
