import type { MemoryBudget } from '../../operators/planner/memory-budget.ts';
import { KeptForms } from '../../operators/ratings/kept-forms.ts';
import { Dataset } from '../dataset.ts';

const keptOf = new WeakMap<Dataset, KeptForms>();

/**
 * A copy of a data set whose ratings stay loaded in memory between fits. `together`: number of fits that run
 * on it at the same time.
 */
export function keptDataset({ session, plan, columns }: Dataset, together = 1): Dataset {
  const kept = new Dataset(session, plan, columns);
  keptOf.set(kept, new KeptForms(together));
  return kept;
}

/** The loaded forms of a data set that is kept; undefined for another one. */
export function keptForms(dataset: Dataset): KeptForms | undefined {
  return keptOf.get(dataset);
}

/** Ends the caching, so that the loaded ratings can be garbage-collected. */
export function dropKept(dataset: Dataset): void {
  keptOf.delete(dataset);
}

/** Makes a data set that was derived from `from` use the same cache. */
export function keptAs<Made extends Dataset>(dataset: Made, from: Dataset): Made {
  const kept = keptOf.get(from);
  if (kept !== undefined) keptOf.set(dataset, kept);
  return dataset;
}

/**
 * The memory budget of one fit on the data set. Concurrent fits share the ratings, but each has its own
 * factors.
 */
export function budgetOf(dataset: Dataset): MemoryBudget {
  const { memoryBudget, workers } = dataset.session;
  return { memoryBudget, workers, together: keptForms(dataset)?.together ?? 1 };
}
