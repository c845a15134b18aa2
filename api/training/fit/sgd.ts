import { planDevices } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { runInto } from '../../../engine/stream/logical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import { ProfileRatings } from '../../../operators/ratings/profile-ratings.ts';
import { planSgd } from '../../../operators/sgd/plan.ts';
import { planCheckpoints } from '../../../operators/training/planned-checkpoints.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import { describeInput } from '../../rating-input.ts';
import type { FitOptions } from '../../fit-options.ts';
import { intervalOf } from '../checkpoints/checkpoint-options.ts';
import { budgetOf } from '../kept-ratings.ts';
import { ExplainedPlan } from '../plans/explained-plan.ts';
import { requireBudget } from '../plans/memory-budget.ts';
import { trainingDevice } from '../training-device.ts';
import { fitModel } from './fit.ts';
import { foundSets } from './fit-run.ts';
import { SgdFit } from './sgd-fit.ts';
import { indexFit, type SgdTraining, stepParams } from './sgd-read.ts';
import type { ContinuedFit } from '../continued-fit.ts';

/**
 * Plans a training by SGD. Reads the ids once to count users and items, including the ids of a model that is
 * continued.
 */
export async function planSgdFit(
  fit: SgdTraining,
  given: Dataset,
  options: FitOptions,
): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  trainingDevice(given.session.device, context.executor, fit.params);
  const sets = { ratings: given, validation: options.validation };
  const { ratings, validation } = await foundSets(fit.input, sets, context);
  return Holdings.ofRun(context, async (ctx) => {
    const profile = fit.start === undefined ? await profileOf(fit, ratings, ctx) : undefined;
    const { details, ...indexed } = profile
      ? { profile, details: {} }
      : await indexFit(fit, ratings, validation, ctx);
    const planned = planSgd(
      { ...indexed.profile, testRatings: validation && (await fit.input.countPairs(validation)) },
      stepParams(fit),
      planDevices(ctx.executor),
      details,
    );
    const plan = planCheckpoints(planned, intervalOf(options));
    requireBudget(plan, {
      ...budgetOf(ratings),
      loading: await fit.input.loadingNeed(ratings, indexed.profile.ratings, ctx.signal),
    });
    return new ExplainedPlan(plan);
  });
}

async function profileOf(
  { input }: SgdTraining,
  ratings: Dataset,
  ctx: ExecutionContext,
): Promise<RatingsProfile> {
  const { users, items, ratings: count } = await runInto(input.selected(ratings), new ProfileRatings(), ctx);
  return { users, items, ratings: count, input: describeInput(ratings.plan) };
}

/** Trains by SGD. */
export function fitSgd(fit: SgdTraining, ratings: Dataset, options: ContinuedFit): Promise<Model> {
  const { params, input } = fit;
  return fitModel(
    {
      about: { algorithm: 'sgd', params },
      input,
      begin: (run) => new SgdFit(fit, run),
    },
    ratings,
    options,
  );
}
