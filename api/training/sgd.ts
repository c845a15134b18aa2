import type { ExecutionContext } from '../../engine/run/context.ts';
import { planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { rootSource, runInto } from '../../engine/stream/logical-plan.ts';
import { orPlanned, requireBudget } from '../../operators/planner/memory-budget.ts';
import type { RatingsProfile } from '../../operators/planner/sizes.ts';
import { profileRatings } from '../../operators/ratings/profile-ratings.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/select-ratings.ts';
import type { ColdStart } from '../../operators/serving/predict.ts';
import { fitSgd, indexSgd, planTraining, type SgdTraining } from '../../operators/sgd/fit.ts';
import { checkSgdParams, type SgdParams } from '../../operators/sgd/params.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import { refuseAttributes } from '../attributes.ts';
import { requireOptions } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import { checkFit, type FitOptions, type PlanOptions } from '../fit-options.ts';
import type { Model } from '../model.ts';
import { RatingInput, ratingOptionNames, type RatingOptions } from '../rating-input.ts';
import { intervalOf } from './checkpoints/checkpoint-options.ts';
import { budgetOf, keptForms } from './kept-ratings.ts';
import { ExplainedPlan } from './plans/explained-plan.ts';
import { type ContinuedFit, foundSets, runFit } from './run-fit.ts';
import { trainingDevice } from './training-device.ts';

/** Parameters of `SGD` and options of its ratings. An unknown name is an error. */
export interface SgdOptions extends Partial<SgdParams>, RatingOptions {}

/**
 * Stochastic gradient descent on explicit ratings (cuMF_SGD): epochs are cheaper than ALS's iterations, but
 * it needs more of them, and a learning rate. Immutable; `fit` may run many times.
 */
export class SGD {
  readonly params: SgdParams;
  readonly columns: {
    readonly user: string;
    readonly item: string;
    readonly rating: string;
    readonly timestamp: string;
  };
  readonly coldStartStrategy: ColdStart;
  readonly onDuplicates: DuplicatePolicy;
  readonly onBadRows: BadRowPolicy;
  readonly #input: RatingInput;

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: SgdOptions = {}) {
    requireOptions('new SGD', options);
    refuseAttributes(options);
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } =
      options;
    this.params = checkSgdParams(rest, ratingOptionNames);
    this.#input = new RatingInput({
      userCol,
      itemCol,
      ratingCol,
      timestampCol,
      coldStartStrategy,
      onDuplicates,
      onBadRows,
    });
    this.columns = this.#input.columns;
    this.coldStartStrategy = this.#input.coldStartStrategy;
    this.onDuplicates = this.#input.onDuplicates;
    this.onBadRows = this.#input.onBadRows;
  }

  /**
   * The physical plan for these ratings, printable by `explain` (or String()). Reads the ids once to count
   * users and items; allocates no factors. Throws CapacityError when the problem doesn't fit.
   */
  async plan(ratings: Dataset, options: PlanOptions = {}): Promise<ExplainedPlan> {
    checkFit('SGD.plan', ratings, options);
    return planSgdFit({ params: this.params }, this.#input, ratings, options);
  }

  /**
   * Trains a model. Events report every phase and epoch (type 'iteration'), the expected collisions of
   * parallel workers, and epochs that were repeated at half the rate; `signal` cancels. `plan`: a plan made
   * before, for these ratings, parameters and devices. With `checkpointDir` a stopped run can continue
   * (docs/checkpoints.md). Throws DataError for unusable data, CapacityError when it doesn't fit,
   * DivergedError when an epoch diverges even after halving the rate three times, DeviceLostError when the
   * last GPU was lost, or LostTrainingError, with a model, if an epoch's factors had been copied from it.
   */
  async fit(ratings: Dataset, options: FitOptions = {}): Promise<Model> {
    checkFit('SGD.fit', ratings, options, true);
    const fit = { params: this.params };
    return orPlanned(
      () => trainBySgd(fit, this.#input, ratings, options),
      () => planSgdFit(fit, this.#input, ratings, options),
      rootSource(ratings.plan).replayable,
    );
  }
}

/**
 * Plans a training by SGD. Reads the ids once to count users and items, including the ids of a model that is
 * continued.
 */
export async function planSgdFit(
  fit: SgdTraining,
  input: RatingInput,
  given: Dataset,
  options: FitOptions,
): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  trainingDevice(given.session.device, context.executor, fit.params);
  const sets = { ratings: given, validation: options.validation };
  const { ratings, validation } = await foundSets(input, sets, context);
  return Holdings.ofRun(context, async (ctx) => {
    const profile = fit.start === undefined ? await profileOf(input, ratings, ctx) : undefined;
    const { details, ...indexed } = profile
      ? { profile, details: {} }
      : await indexSgd(
          fit,
          {
            input: input.describe(ratings),
            kept: keptForms(ratings),
            index: (own, limits) => input.index(ratings, validation, own, limits),
          },
          ctx,
        );
    const plan = planTraining(
      fit,
      { ...indexed.profile, testRatings: validation && (await input.countPairs(validation)) },
      planDevices(ctx.executor),
      details,
      intervalOf(options),
    );
    requireBudget(plan, {
      ...budgetOf(ratings),
      loading: await input.loadingNeed(ratings, indexed.profile.ratings, ctx.signal),
    });
    return new ExplainedPlan(plan);
  });
}

async function profileOf(
  input: RatingInput,
  ratings: Dataset,
  ctx: ExecutionContext,
): Promise<RatingsProfile> {
  const { users, items, ratings: count } = await runInto(input.selected(ratings), profileRatings(), ctx);
  return { users, items, ratings: count, input: input.describe(ratings) };
}

/** Trains by SGD. A model that continues another one keeps its columns. */
export function trainBySgd(
  fit: SgdTraining,
  input: RatingInput,
  ratings: Dataset,
  options: ContinuedFit,
): Promise<Model> {
  const { params, start } = fit;
  return runFit(
    {
      about: { algorithm: 'sgd', params },
      input,
      ...(start && { columns: input.columns }),
      train: (run) => fitSgd(fit, run),
    },
    ratings,
    options,
  );
}
