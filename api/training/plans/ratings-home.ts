import { CapacityError } from '../../../engine/errors.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { AlsGrid } from '../../../operators/als/plan/grid.ts';
import { baseBytes, fitsBudget, leastBaseBytes, type MemoryBudget, requireBudget } from './memory-budget.ts';

/** Ratings of a part in files, from those that are read with the least overhead to the least that are worth a file. */
const PART_RATINGS = [22, 21, 20, 19, 18].map((bits) => 2 ** bits);

/** Those of a budget that has little more than the process itself takes. */
const TIGHT_RATINGS = [2 ** 19, 2 ** 18];

/** Parts may be unequal by so much: they end where slices of rows do. */
const SLACK = 1.05;

/** Ratings of one block, at most: its row pointers are 32-bit. Further ones lie in files, in parts. */
const MOST_IN_MEMORY = 2 ** 31 - 1;

/** The home of ratings while they are trained on: memory where the plan fits the budget, else files of the spill folder in parts. */
export type RatingsHome = { readonly plan: PhysicalPlan } & ({ readonly kind: 'memory' } | { readonly kind: 'spill'; readonly partRatings: number });

/**
 * Chooses the home of ratings by the plans that `planOf` makes. Throws CapacityError with the least budget where even small parts do not fit, or where
 * ratings must stay in memory (`mayBeInFiles`) and do not.
 */
export function ratingsHome(mayBeInFiles: boolean, planOf: (options: { readonly grid?: AlsGrid }) => PhysicalPlan, ratings: number, budget: MemoryBudget): RatingsHome {
  const plan = planOf({});
  if (!mayBeInFiles) requireBudget(plan, budget);
  const inOneBlock = ratings <= MOST_IN_MEMORY;
  if (!inOneBlock && !mayBeInFiles) throw new CapacityError(`${ratings.toLocaleString('en')} ratings are more than the ${MOST_IN_MEMORY.toLocaleString('en')} of a block in memory`, { phase: 'plan', advice: 'Train without keeping the ratings for further runs' });
  if (inOneBlock && fitsBudget(plan, budget)) return { kind: 'memory', plan };
  // Two parts at least, or the device would hold all ratings at once.
  const inParts = (most: number) => {
    const parts = Math.max(2, Math.ceil(ratings / most));
    return { kind: 'spill', partRatings: Math.min(most, Math.ceil((SLACK * ratings) / parts)), plan: planOf({ grid: spillGrid(parts) }) } as const;
  };
  for (const [sizes, baseOf] of [[PART_RATINGS, baseBytes], [TIGHT_RATINGS, leastBaseBytes]] as const) {
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
