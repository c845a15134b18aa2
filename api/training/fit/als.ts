import { planDevices } from '../../../engine/run/devices.ts';
import { runInto } from '../../../engine/stream/logical-plan.ts';
import { chooseKernels } from '../../../operators/als/kernel-choices.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import { ProfileRatings } from '../../../operators/ratings/profile-ratings.ts';
import { planCheckpoints } from '../../../operators/training/planned-checkpoints.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import { describeInput, type RatingInput } from '../../rating-input.ts';
import type { FitOptions } from '../../fit-options.ts';
import { intervalOf } from '../checkpoints/checkpoint-options.ts';
import { budgetOf, isKept, keptAs } from '../kept-ratings.ts';
import { ExplainedPlan } from '../plans/explained-plan.ts';
import { ratingsHome } from '../plans/ratings-home.ts';
import { trainingDevice } from '../training-device.ts';
import { unratedAsOnes } from '../unrated-as-ones.ts';
import { AlsFit } from './als-fit.ts';
import { NO_SIZES } from './als-sort.ts';
import { fitModel } from './fit.ts';
import { foundSets, type Rated } from './fit-run.ts';
import type { ContinuedFit } from '../continued-fit.ts';

/** The parameters and input of a training by ALS. */
export interface AlsTraining {
  readonly params: AlsParams;
  readonly input: RatingInput;
}

/** Plans such a training. Reads the ids once, to count users and items. */
export async function planAlsFit(
  { params, input }: AlsTraining,
  given: Dataset,
  options: FitOptions,
): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  const sets = { ratings: given, validation: options.validation };
  const { ratings, validation } = await foundSets(input, sets, context, ratedBy(params, input));
  const { executor } = trainingDevice(ratings.session.device, context.executor, params);
  const ctx = { ...context, executor };
  const {
    users,
    items,
    ratings: count,
    userDegrees,
    itemDegrees,
    rating,
  } = await runInto(input.selected(ratings), new ProfileRatings(), ctx);
  const testRatings = validation && (await input.countPairs(validation));
  const largestRating = rating && Math.max(Math.abs(rating.least), Math.abs(rating.most));
  const known: RatingsProfile = {
    users,
    items,
    ratings: count,
    longestUser: userDegrees.most,
    longestItem: itemDegrees.most,
    largestRating,
    testRatings,
    input: describeInput(ratings.plan),
  };
  const choices = await chooseKernels(known, params, ctx);
  const inParts = !isKept(ratings);
  const budget = {
    ...budgetOf(ratings),
    loading: await input.loadingNeed(ratings, count, ctx.signal, { inParts }),
  };
  const { plan } = ratingsHome(
    inParts,
    (grid) =>
      planCheckpoints(planAls(known, params, planDevices(executor), choices, grid), intervalOf(options)),
    count,
    budget,
  );
  return new ExplainedPlan(plan);
}

/** Implicit data may have no ratings: see unratedAsOnes. */
function ratedBy({ implicitPrefs }: AlsParams, input: RatingInput): Rated {
  return async (dataset, ctx) =>
    implicitPrefs
      ? keptAs(await unratedAsOnes(dataset, input.columnsOf(dataset).rating, ctx), dataset)
      : dataset;
}

/** Trains by ALS. */
export function fitAls(
  { params, input }: AlsTraining,
  ratings: Dataset,
  options: ContinuedFit,
): Promise<Model> {
  return fitModel(
    {
      about: { algorithm: 'als', params },
      input,
      check: async (ctx) => params.kernel !== undefined && chooseKernels(NO_SIZES, params, ctx),
      rated: ratedBy(params, input),
      begin: (run) => new AlsFit(params, run),
    },
    ratings,
    options,
  );
}
