import { CancelledError } from '../../engine/errors.ts';
import { dataSetName } from '../../engine/partition.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST } from '../../engine/plan/place.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice } from '../../engine/run/devices.ts';
import { giveTo } from '../../engine/run/run-steps.ts';
import { baseBytes, type MemoryBudget } from '../planner/memory-budget.ts';
import { hostForm, type RatingBlock, oneBlock, type Ratings, ratingsOf } from './ratings.ts';

/**
 * Ratings that stay loaded in memory between fits, in each form in which a fit loads them. `together`: number
 * of fits that run on them at the same time.
 */
export class KeptForms {
  readonly together: number;
  readonly #forms = new Map<string, Promise<unknown>>();
  /** Bytes of a run with a form, by the prefix of the form's name. */
  readonly #bytes = new Map<string, number>();

  constructor(together: number) {
    this.together = together;
  }

  /**
   * Loads a form, or returns it if it is loaded. `name` must contain all settings on which the form depends.
   */
  load<Form>(name: string, load: () => Promise<Form>): Promise<Form> {
    const known = this.#forms.get(name);
    if (known !== undefined)
      return (known as Promise<Form>).catch((error: unknown) => {
        if (!(error instanceof CancelledError)) throw error;
        // Another fit loaded it and was cancelled, which must not fail this fit; so it is loaded again.
        return this.load(name, load);
      });
    const loading = load();
    this.#forms.set(name, loading);
    // A failed load is not cached, so that the next fit loads again.
    loading.catch(() => this.#forms.delete(name));
    return loading;
  }

  /**
   * Frees ratings in the forms of other fits, such as of another algorithm, if the budget cannot also hold
   * this fit's. `form` is the prefix of this fit's names.
   */
  makeRoom(form: string, { memoryBudget, workers }: MemoryBudget): void {
    const others = [...this.#bytes].filter(([name]) => name !== form);
    const bytes = others.reduce((sum, [, one]) => sum + one, 0);
    // If the bytes of this form are not known yet, they are assumed to equal the bytes of the others.
    const all = baseBytes(workers) + bytes + (this.#bytes.get(form) ?? bytes);
    if (others.length === 0 || all <= memoryBudget) return;
    for (const [name] of others) this.#bytes.delete(name);
    for (const name of this.#forms.keys()) if (!name.startsWith(`${form} `)) this.#forms.delete(name);
  }

  /** Records the host memory that a fit takes for ratings in this form. */
  noteBytes(form: string, { memory }: PhysicalPlan): void {
    this.#bytes.set(form, memory[HOST] ?? 0);
  }
}

/** Loads a form of ratings; only once for ratings that are kept. */
export function loadedOnce<Form>(
  kept: KeptForms | undefined,
  name: string,
  load: () => Promise<Form>,
): Promise<Form> {
  return kept === undefined ? load() : kept.load(name, load);
}

/**
 * Gives a fit its own name for a kept block on the device. So when the fit ends and releases its data, other
 * fits keep theirs. Returns the block itself if it is not kept.
 */
export async function ownBlock(
  kept: KeptForms | undefined,
  block: RatingBlock,
  ctx: ExecutionContext,
): Promise<RatingBlock> {
  if (kept === undefined) return block;
  const ref = { name: dataSetName('kept'), partition: 0, version: 0 };
  await giveTo(ctx, hostDevice(ctx.executor).info.place, [[ref, hostForm(block)]]);
  return { ...block, ref };
}

/** Like ownBlock, for ratings; kept ratings are always one block. */
export async function ownRatings(
  kept: KeptForms | undefined,
  ratings: Ratings,
  ctx: ExecutionContext,
): Promise<Ratings> {
  return kept === undefined ? ratings : ratingsOf(await ownBlock(kept, oneBlock(ratings), ctx));
}
