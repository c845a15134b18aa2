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
 * Loaded forms of a dataset, by name; the bytes that runs on them take, by the beginning of their names; and
 * the number of runs at a time.
 */
interface Kept {
  readonly forms: Map<string, Promise<unknown>>;
  readonly bytes: Map<string, number>;
  readonly together: number;
}

const keptOf = new WeakMap<Dataset, Kept>();

/**
 * The same dataset, whose loaded forms are kept, in memory, from one fit to the next, for as long as it is.
 * `together`: fits on it at the same time.
 */
export function keptDataset({ session, plan, columns }: Dataset, together = 1): Dataset {
  const kept = new Dataset(session, plan, columns);
  keptOf.set(kept, { forms: new Map(), bytes: new Map(), together });
  return kept;
}

export function isKept(dataset: Dataset): boolean {
  return keptOf.has(dataset);
}

/** Ends it: what is loaded may go. */
export function dropKept(dataset: Dataset): void {
  keptOf.delete(dataset);
}

/** A dataset that another is made from in each fit has the same loaded forms. */
export function keptAs<Made extends Dataset>(dataset: Made, from: Dataset): Made {
  const kept = keptOf.get(from);
  if (kept !== undefined) keptOf.set(dataset, kept);
  return dataset;
}

/** The budget of a fit on the dataset: factors are there once for each fit at the same time. */
export function budgetOf(dataset: Dataset): MemoryBudget {
  const { memoryBudget, workers } = dataset.session;
  return { memoryBudget, workers, together: keptOf.get(dataset)?.together ?? 1 };
}

/**
 * Drops the forms of other fits, such as those of another algorithm, where the budget does not hold them
 * beside those of `form`, with which its names begin.
 */
export function makeRoom(dataset: Dataset, form: string): void {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return;
  const others = [...kept.bytes].filter(([name]) => name !== form);
  const bytes = others.reduce((sum, [, one]) => sum + one, 0);
  const { memoryBudget, workers } = dataset.session;
  // A form that is not known yet is taken to be as large as the others.
  if (others.length === 0 || baseBytes(workers) + bytes + (kept.bytes.get(form) ?? bytes) <= memoryBudget)
    return;
  for (const [name] of others) kept.bytes.delete(name);
  for (const name of kept.forms.keys()) if (!name.startsWith(`${form} `)) kept.forms.delete(name);
}

/** Notes the bytes of ratings in host memory that a fit on such a form takes. */
export function noteBytes(dataset: Dataset, form: string, { memory }: PhysicalPlan): void {
  keptOf.get(dataset)?.bytes.set(form, memory[HOST] ?? 0);
}

/**
 * A form of the dataset, made once where the dataset is kept, else each time. `name` names everything that
 * the form depends on beside the dataset.
 */
export function loadedOnce<Form>(dataset: Dataset, name: string, load: () => Promise<Form>): Promise<Form> {
  const kept = keptOf.get(dataset);
  if (kept === undefined) return load();
  const known = kept.forms.get(name);
  if (known !== undefined)
    return (known as Promise<Form>).catch((error: unknown) => {
      if (!(error instanceof CancelledError)) throw error;
      // The fit that loaded it failed or was cancelled, which is no failure of this fit.
      return loadedOnce(dataset, name, load);
    });
  const loading = load();
  kept.forms.set(name, loading);
  // A load that was cancelled or failed is tried again by the next fit.
  loading.catch(() => kept.forms.delete(name));
  return loading;
}

/**
 * A kept block for one fit, known to the device under a name of its own: what a fit releases at its end is
 * not another's. The block itself where it is not kept.
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

/** The same of ratings; those that are kept are one block. */
export async function ownRatings(
  dataset: Dataset,
  ratings: Ratings,
  ctx: ExecutionContext,
): Promise<Ratings> {
  return isKept(dataset) ? ratingsOf(await ownBlock(dataset, oneBlock(ratings), ctx)) : ratings;
}
