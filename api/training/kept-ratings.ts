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
 * The loaded forms of a data set, by name; for each form, the bytes of a run that uses it (by the prefix of
 * its name); and the number of concurrent runs.
 */
interface Kept {
  readonly forms: Map<string, Promise<unknown>>;
  readonly bytes: Map<string, number>;
  readonly together: number;
}

const keptOf = new WeakMap<Dataset, Kept>();

/**
 * A copy of a data set whose loaded forms are cached in memory between fits. `together`: number of concurrent
 * fits on it.
 */
export function keptDataset({ session, plan, columns }: Dataset, together = 1): Dataset {
  const kept = new Dataset(session, plan, columns);
  keptOf.set(kept, { forms: new Map(), bytes: new Map(), together });
  return kept;
}

export function isKept(dataset: Dataset): boolean {
  return keptOf.has(dataset);
}

/** Ends the caching, so that loaded forms can be collected. */
export function dropKept(dataset: Dataset): void {
  keptOf.delete(dataset);
}

/** Makes a data set that a fit derives from `from` share the loaded forms of `from`. */
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
 * Evicts cached forms of other fits, such as of another algorithm, if the budget cannot also hold this fit's.
 * `form` is the prefix of this fit's names.
 */
export function makeRoom(dataset: Dataset, form: string): void {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return;
  const others = [...kept.bytes].filter(([name]) => name !== form);
  const bytes = others.reduce((sum, [, one]) => sum + one, 0);
  const { memoryBudget, workers } = dataset.session;
  // An unknown form is assumed to be as large as the others.
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
 * Returns a form of the data set; cached if the data set is kept. `name` must contain all settings that the
 * form depends on.
 */
export function loadedOnce<Form>(dataset: Dataset, name: string, load: () => Promise<Form>): Promise<Form> {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return load();
  const known = kept.forms.get(name);
  if (known !== undefined)
    return (known as Promise<Form>).catch((error: unknown) => {
      if (!(error instanceof CancelledError)) throw error;
      // The other fit that loaded it failed or was cancelled; this fit should not fail because of that.
      return loadedOnce(dataset, name, load);
    });
  const loading = load();
  kept.forms.set(name, loading);
  // A load that failed or was cancelled is repeated by the next fit.
  loading.catch(() => kept.forms.delete(name));
  return loading;
}

/**
 * A kept block for one fit, registered at the device under its own name, so that a fit's release at its end
 * does not affect others. The block itself if it is not kept.
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

/** The same for ratings; kept ratings are one block. */
export async function ownRatings(
  dataset: Dataset,
  ratings: Ratings,
  ctx: ExecutionContext,
): Promise<Ratings> {
  return isKept(dataset) ? ratingsOf(await ownBlock(dataset, oneBlock(ratings), ctx)) : ratings;
}
