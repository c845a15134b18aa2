import { requireOptions } from '../check-options.ts';
import type { ColdStart } from '../../operators/serving/predict.ts';
import type { BadRowPolicy } from '../../operators/ratings/rows/bad-rows.ts';
import { checkSgdParams, type SgdParams } from '../../operators/sgd/params.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import type { Dataset } from '../dataset.ts';
import { rootSource } from '../../engine/stream/logical-plan.ts';
import type { ExplainedPlan } from './plans/explained-plan.ts';
import { orPlanned } from './plans/memory-budget.ts';
import { fitSgd, planSgdFit } from './fit/sgd.ts';
import type { Model } from '../model.ts';
import { checkFit, type FitOptions, type PlanOptions } from '../fit-options.ts';
import { RatingInput } from '../rating-input.ts';
import { type RatingOptions, ratingOptionNames } from '../rating-options.ts';

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
    return planSgdFit({ params: this.params, input: this.#input }, ratings, options);
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
    const fit = { params: this.params, input: this.#input };
    return orPlanned(
      () => fitSgd(fit, ratings, options),
      () => planSgdFit(fit, ratings, options),
      rootSource(ratings.plan).replayable,
    );
  }
}
