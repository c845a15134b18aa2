import { CancelledError } from '../../engine/errors.ts';
import { dataSetName } from '../../engine/partition.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/hand-over.ts';
import { hostForm, type RatingBlock } from '../../operators/ratings/rating-block.ts';
import { oneBlock, type Ratings, ratingsOf } from '../../operators/ratings/ratings.ts';
import { Dataset } from '../dataset.ts';
import { baseBytes, type MemoryBudget } from './plans/memory-budget.ts';

/**
 * The cache of a data set: the loaded data in each form, by name; the bytes of a run with a form, by the
 * prefix of its name; and the number of fits that run at the same time.
 */
interface Kept {
  readonly forms: Map<string, Promise<unknown>>;
  readonly bytes: Map<string, number>;
  readonly together: number;
}

const keptOf = new WeakMap<Dataset, Kept>();

/**
 * A copy of a data set whose ratings stay loaded in memory between fits. `together`: number of fits that run
 * on it at the same time.
 */
export function keptDataset({ session, plan, columns }: Dataset, together = 1): Dataset {
  const kept = new Dataset(session, plan, columns);
  keptOf.set(kept, { forms: new Map(), bytes: new Map(), together });
  return kept;
}

export function isKept(dataset: Dataset): boolean {
  return keptOf.has(dataset);
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
  return { memoryBudget, workers, together: keptOf.get(dataset)?.together ?? 1 };
}

/**
 * Frees cached ratings in the forms of other fits, such as of another algorithm, if the budget cannot also
 * hold this fit's. `form` is the prefix of this fit's names.
 */
export function makeRoom(dataset: Dataset, form: string): void {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return;
  const others = [...kept.bytes].filter(([name]) => name !== form);
  const bytes = others.reduce((sum, [, one]) => sum + one, 0);
  const { memoryBudget, workers } = dataset.session;
  // If the bytes of this form are not known yet, they are assumed to equal the bytes of the others.
  if (others.length === 0 || baseBytes(workers) + bytes + (kept.bytes.get(form) ?? bytes) <= memoryBudget)
    return;
  for (const [name] of others) kept.bytes.delete(name);
  for (const name of kept.forms.keys()) if (!name.startsWith(`${form} `)) kept.forms.delete(name);
}

/** Records the host memory that a fit takes for ratings in this form. */
export function noteBytes(dataset: Dataset, form: string, { memory }: PhysicalPlan): void {
  keptOf.get(dataset)?.bytes.set(form, memory[HOST] ?? 0);
}

/**
 * Loads a form of the data set, or returns it from the cache. `name` must contain all settings on which the
 * form depends.
 */
export function loadedOnce<Form>(dataset: Dataset, name: string, load: () => Promise<Form>): Promise<Form> {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return load();
  const known = kept.forms.get(name);
  if (known !== undefined)
    return (known as Promise<Form>).catch((error: unknown) => {
      if (!(error instanceof CancelledError)) throw error;
      // Another fit loaded it and was cancelled, which must not fail this fit; so it is loaded again.
      return loadedOnce(dataset, name, load);
    });
  const loading = load();
  kept.forms.set(name, loading);
  // A failed load is not cached, so that the next fit loads again.
  loading.catch(() => kept.forms.delete(name));
  return loading;
}

/**
 * Gives a fit its own name for a cached block on the device. So when the fit ends and releases its data,
 * other fits keep theirs. Returns the block itself if it is not cached.
 */
export async function ownBlock(
  dataset: Dataset,
  block: RatingBlock,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  if (!isKept(dataset)) return block;
  const ref = { name: dataSetName('kept'), partition: 0, version: 0 };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, hostForm(block)]]);
  return { ...block, ref };
}

/** Like ownBlock, for ratings; cached ratings are always one block. */
export async function ownRatings(
  dataset: Dataset,
  ratings: Ratings,
  ctx: ExecutionContext,
): Promise<Ratings> {
  return isKept(dataset) ? ratingsOf(await ownBlock(dataset, oneBlock(ratings), ctx)) : ratings;
}
