import { planDevices } from '../../engine/run/devices.ts';
import { rootSource, runInto } from '../../engine/stream/logical-plan.ts';
import { type AlsParams, wantedRecency } from '../../operators/als/als-params.ts';
import { fitAls } from '../../operators/als/fit.ts';
import { chooseKernels, NO_SIZES } from '../../operators/als/kernel-choices.ts';
import { alsDefaults, checkAlsParams } from '../../operators/als/params.ts';
import { planFit } from '../../operators/als/plan/ratings-home.ts';
import { orPlanned } from '../../operators/planner/memory-budget.ts';
import type { RatingsProfile } from '../../operators/planner/sizes.ts';
import { profileRatings } from '../../operators/ratings/profile-ratings.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/select-ratings.ts';
import type { ColdStart } from '../../operators/serving/predict.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import { attributeOptionNames, type AttributesOptions, TrainerAttributes } from '../attributes.ts';
import { requireOptions } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import { checkFit, type FitOptions, type PlanOptions } from '../fit-options.ts';
import type { Model } from '../model.ts';
import { RatingInput, ratingOptionNames, type RatingOptions } from '../rating-input.ts';
import { intervalOf } from './checkpoints/checkpoint-options.ts';
import { budgetOf, keptAs, keptForms } from './kept-ratings.ts';
import { ExplainedPlan } from './plans/explained-plan.ts';
import { type ContinuedFit, type Fit, foundSets, type Rated, runFit } from './run-fit.ts';
import { trainingDevice } from './training-device.ts';
import { unratedAsOnes } from './unrated-as-ones.ts';

/**
 * Parameters of `ALS`: Spark ML's names and further ones; `ALS.spark` also has Spark's defaults. An unknown
 * name is an error.
 */
export interface AlsOptions extends Partial<AlsParams>, RatingOptions, AttributesOptions {}

/** The largest rank at which `ALS.spark` solves rows exactly: there an iteration takes at most twice the time. */
const EXACT_AS_SPARK = 64;

/**
 * Alternating least squares, by default with biases: docs/measured/quality.md. Immutable; `fit` may run many
 * times.
 */
export class ALS {
  readonly params: AlsParams;
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
  readonly #attributes: TrainerAttributes;

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: AlsOptions = {}) {
    requireOptions('new ALS', options);
    const { itemAttributes, userAttributes, ...others } = options;
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } =
      others;
    this.params = checkAlsParams(rest, [...ratingOptionNames, ...attributeOptionNames]);
    this.#attributes = new TrainerAttributes({ itemAttributes, userAttributes });
    this.#input = new RatingInput(
      { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows },
      undefined,
      wantedRecency(this.params),
    );
    this.columns = this.#input.columns;
    this.coldStartStrategy = this.#input.coldStartStrategy;
    this.onDuplicates = this.#input.onDuplicates;
    this.onBadRows = this.#input.onBadRows;
  }

  /**
   * ALS with Spark's defaults: no biases, λ 0.1 times a row's ratings, Spark's zero-mean initial factors, and
   * for implicit data α 1 and ratings as weights (`weight: 'spark'`). Rows are solved exactly, as Spark solves
   * them, at ranks up to 64; at larger ranks, or with `cgSteps` or `partitionSums`, the solver is
   * `auto`, with six steps of conjugate gradients. Its models have Spark's form: a row has exactly `rank` features. `options` may
   * override any parameter.
   */
  static spark(options: AlsOptions = {}): ALS {
    requireOptions('ALS.spark', options);
    const { rank = alsDefaults.rank, cgSteps, partitionSums } = options;
    const isExact = rank <= EXACT_AS_SPARK && cgSteps === undefined && partitionSums === undefined;
    return new ALS({
      biases: false,
      regParam: 0.1,
      start: 'spark',
      ...(isExact ? { solver: 'cholesky' } : { cgSteps: 6 }),
      ...(options.implicitPrefs ? { alpha: 1, weight: 'spark', regExponent: 1 } : {}),
      ...options,
    });
  }

  /**
   * The physical plan for these ratings, printable by `explain` (or String()). Reads the ids once to count
   * users and items; allocates no factors. Throws CapacityError when the problem doesn't fit.
   */
  async plan(ratings: Dataset, options: PlanOptions = {}): Promise<ExplainedPlan> {
    checkFit('ALS.plan', ratings, options);
    return planAlsFit(this.params, this.#input, ratings, { ...options, attributes: this.#attributes });
  }

  /**
   * Trains a model. Events report every phase and iteration; `signal` cancels. `plan`: a plan made before,
   * for these ratings, parameters and devices. With `checkpointDir` a stopped run can continue
   * (docs/checkpoints.md). Throws DataError for unusable data, CapacityError when it doesn't fit,
   * DivergedError naming iteration, side and row, UsageError for a plan that does not fit, DeviceLostError
   * when the last GPU was lost, or LostTrainingError, with a model, if an iteration's factors had been copied
   * from it.
   */
  async fit(ratings: Dataset, options: FitOptions = {}): Promise<Model> {
    checkFit('ALS.fit', ratings, options, true);
    const { params } = this;
    const input = this.#input;
    const attributes = this.#attributes;
    const { continued }: ContinuedFit = options;
    const fit: Fit = {
      about: { algorithm: 'als', params },
      input,
      check: async (ctx) => params.kernel !== undefined && chooseKernels(NO_SIZES, params, ctx),
      rated: ratedBy(params, input),
      attributes,
      train: (run, read) => fitAls(params, run, { attributes: read?.ofIds, ...continued }),
    };
    return orPlanned(
      () => runFit(fit, ratings, options),
      () => planAlsFit(params, input, ratings, { ...options, attributes }),
      rootSource(ratings.plan).replayable,
    );
  }
}

/** Plans a training by ALS. Reads the ids once, to count users and items. */
async function planAlsFit(
  params: AlsParams,
  asked: RatingInput,
  given: Dataset,
  { attributes, ...options }: FitOptions & { readonly attributes: TrainerAttributes },
): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  const sets = { ratings: given, validation: options.validation };
  const { ratings, validation } = await foundSets(asked, sets, context, ratedBy(params, asked));
  const input = await asked.weighed(ratings, context);
  const { executor } = trainingDevice(ratings.session.device, context.executor, params);
  const ctx = { ...context, executor };
  const {
    users,
    items,
    ratings: count,
    userDegrees,
    itemDegrees,
    rating,
    ids,
  } = await runInto(input.selected(ratings), profileRatings(), ctx);
  const read = await attributes.read(input.columns, ctx);
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
    attributes: read?.sizesOf(ids),
    input: input.describe(ratings),
  };
  const choices = await chooseKernels(known, params, ctx);
  const mayBeInParts = keptForms(ratings) === undefined && !attributes.areGiven;
  const loading = await input.loadingNeed(ratings, count, ctx.signal, { inParts: mayBeInParts });
  const setting = {
    params: { ...params, ...(input.weighing && { now: input.weighing.iso }) },
    devices: planDevices(executor),
    budget: { ...budgetOf(ratings), loading },
    mayBeInParts,
    interval: intervalOf(options),
  };
  return new ExplainedPlan(planFit(setting, known, choices).plan);
}

/** Implicit data may have no ratings: see unratedAsOnes. */
function ratedBy({ implicitPrefs }: AlsParams, input: RatingInput): Rated {
  return async (dataset, ctx) =>
    implicitPrefs
      ? keptAs(await unratedAsOnes(dataset, input.columnsOf(dataset).rating, ctx), dataset)
      : dataset;
}
