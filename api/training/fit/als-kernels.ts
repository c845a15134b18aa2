import { UsageError } from '../../../engine/errors.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { type SizedAlsParams, sizedParams } from '../../../operators/als/implicit/sized-params.ts';
import { type AlsChoices, chooseKernels, tuneKernels } from '../../../operators/als/kernel-choices.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import { type RatingSides, soleBlock } from '../../../operators/ratings/ratings.ts';
import { type GivenPlan, plannedAutos } from '../plans/given-plan.ts';
import { NO_SIZES } from './als-sort.ts';

/** Chooses the kernels; measures their times first if that is worthwhile. */
export async function chooseAlsKernels(
  sides: RatingSides,
  known: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  using _ = ctx.metrics.begin('tune');
  // Kernels are only timed on ratings in a single block; for ratings in parts a rule chooses them.
  if (soleBlock(sides.byUser) && soleBlock(sides.byItem))
    await tuneKernels(sides, known, params, 'where-it-pays', ctx);
  return chooseKernels(known, params, ctx);
}

/**
 * The kernels that a plan names, with the device's description of them. Throws UsageError for an unavailable
 * kernel.
 */
export async function plannedKernels(
  { choices }: GivenPlan,
  known: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  const side = async (name: 'users' | 'items') => {
    const { variant, reason } = (choices[name] ?? {}) as Partial<AlsChoices['users']>;
    if (typeof variant !== 'string')
      throw new UsageError(`the plan does not fit: it names no kernel for ${name}`, {
        phase: 'plan',
        advice: 'Make the plan anew',
      });
    const found = await chooseKernels(known, { ...params, kernel: params.kernel ?? variant }, ctx);
    return found && { ...found[name], ...(typeof reason === 'string' ? { reason } : {}) };
  };
  const [users, items] = [await side('users'), await side('items')];
  return users && items && { users, items };
}

/**
 * The parameters to use before the ratings are read. Values `auto` of α and λ, which depend on the ratings,
 * are taken from the given plan for implicit data.
 */
export function asPlanned({ ...asked }: AlsParams, given: GivenPlan): SizedAlsParams {
  const { alpha = asked.alpha, regParam = asked.regParam } = plannedAutos(given, asked);
  return sizedParams(asked.implicitPrefs ? { ...asked, alpha, regParam } : asked, NO_SIZES);
}
