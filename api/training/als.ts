import { requireOptions } from '../check-options.ts';
import type { AlsParams } from '../../operators/als/als-params.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import type { ColdStart } from '../../operators/serving/predict.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/bad-rows.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import type { Dataset } from '../dataset.ts';
import { rootSource } from '../../engine/stream/logical-plan.ts';
import type { ExplainedPlan } from './plans/explained-plan.ts';
import { orPlanned } from './plans/memory-budget.ts';
import { fitAls, planAlsFit } from './fit/als.ts';
import type { Model } from '../model.ts';
import { checkFit, type FitOptions, type PlanOptions } from '../fit-options.ts';
import { RatingInput } from '../rating-input.ts';
import { type RatingOptions, ratingOptionNames } from '../rating-options.ts';

/**
 * Parameters of `ALS`: Spark ML's names and further ones; `ALS.spark` also has Spark's defaults. An unknown
 * name is an error.
 */
export interface AlsOptions extends Partial<AlsParams>, RatingOptions {}

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

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: AlsOptions = {}) {
    requireOptions('new ALS', options);
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } =
      options;
    this.params = checkAlsParams(rest, ratingOptionNames);
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
   * ALS with Spark's defaults: no biases, λ 0.1 times a row's ratings, Spark's zero-mean initial factors, six
   * steps where rows are solved by conjugate gradients, and for implicit data α 1 and ratings as weights
   * (`weight: 'spark'`). Its models have Spark's form: a row has exactly `rank` features. `options` may
   * override any parameter.
   */
  static spark(options: AlsOptions = {}): ALS {
    requireOptions('ALS.spark', options);
    return new ALS({
      biases: false,
      regParam: 0.1,
      start: 'spark',
      cgSteps: 6,
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
    return planAlsFit({ params: this.params, input: this.#input }, ratings, options);
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
    const fit = { params: this.params, input: this.#input };
    return orPlanned(
      () => fitAls(fit, ratings, options),
      () => planAlsFit(fit, ratings, options),
      rootSource(ratings.plan).replayable,
    );
  }
}
