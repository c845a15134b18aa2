import { UsageError } from '../engine/errors.ts';
import { runInto } from '../engine/logical-plan.ts';
import { planDevices } from '../operators/als-plan.ts';
import type { ColdStart } from '../operators/predict.ts';
import { ProfileRatings } from '../operators/profile-ratings.ts';
import type { BadRowPolicy } from '../operators/select-ratings.ts';
import { checkSgdParams, type SgdParams } from '../operators/sgd/params.ts';
import { planSgd } from '../operators/sgd/plan.ts';
import type { DuplicatePolicy } from '../operators/tasks.ts';
import type { Dataset } from './dataset.ts';
import { ExplainedPlan } from './explained-plan.ts';
import { fitSgd, sgdTraining } from './fit-sgd.ts';
import { requireBudget } from './memory-budget.ts';
import type { Model } from './model.ts';
import { checkFit, describeInput, type FitOptions, RatingInput, type RatingOptions, ratingOptionNames } from './rating-input.ts';

/** Parameters of `SGD`, and what it is told of its ratings. A name that is not here is an error. */
export interface SgdOptions extends Partial<SgdParams>, RatingOptions {}

/**
 * Stochastic gradient descent on explicit ratings (cuMF_SGD): cheaper epochs than ALS's iterations, more of them, and a
 * learning rate to choose. Immutable; `fit` may run many times.
 */
export class SGD {
  readonly params: SgdParams;
  readonly columns: { readonly user: string; readonly item: string; readonly rating: string; readonly timestamp: string };
  readonly coldStartStrategy: ColdStart;
  readonly onDuplicates: DuplicatePolicy;
  readonly onBadRows: BadRowPolicy;
  readonly #input: RatingInput;

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: SgdOptions = {}) {
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } = options;
    const { rank, maxIter, regParam, regParamUsers, regParamItems, seed, biases, learningRate, decay, rate, schedule, precision, earlyStop, targetRmse, ...unknown } = rest;
    const own = { rank, maxIter, regParam, regParamUsers, regParamItems, seed, biases, learningRate, decay, rate, schedule, precision, earlyStop, targetRmse };
    for (const name of Object.keys(unknown)) throw new UsageError(`unknown SGD parameter ${name}`, { advice: `There are: ${[...Object.keys(own), ...ratingOptionNames].join(', ')}` });
    this.params = checkSgdParams(own);
    this.#input = new RatingInput({ userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows });
    this.columns = this.#input.columns;
    this.coldStartStrategy = this.#input.coldStartStrategy;
    this.onDuplicates = this.#input.onDuplicates;
    this.onBadRows = this.#input.onBadRows;
  }

  /**
   * The physical plan for these ratings, printable by `explain` (or String()). Reads the ids once to count users and
   * items; allocates no factors. Throws CapacityError when the problem doesn't fit.
   */
  async plan(ratings: Dataset, options: FitOptions = {}): Promise<ExplainedPlan> {
    checkFit('SGD.plan', ratings, options);
    const { executor } = sgdTraining(ratings.session, this.params);
    const ctx = { ...ratings.session.context(options), executor };
    const { users, items, ratings: count } = await runInto(this.#input.selected(ratings.plan), new ProfileRatings(), ctx);
    const testRatings = options.validation === undefined ? undefined : await options.validation.count();
    const { device, host, others } = planDevices(executor);
    const plan = planSgd({ users, items, ratings: count, testRatings, input: describeInput(ratings.plan) }, this.params, device, { host, others });
    requireBudget(plan, ratings.session.memoryBudget);
    return new ExplainedPlan(plan);
  }

  /**
   * Trains a model. Events tell of every phase and epoch (type 'iteration'), of the expected collisions of parallel workers,
   * and of epochs that were run again with half the rate; `signal` cancels. Throws DataError for unusable data, CapacityError
   * when it doesn't fit, DivergedError when three halved rates did not help, DeviceLostError when a GPU went away:
   * LostTrainingError, with a model, where an epoch's factors had been copied from it.
   */
  async fit(ratings: Dataset, options: FitOptions = {}): Promise<Model> {
    checkFit('SGD.fit', ratings, options);
    return fitSgd({ params: this.params, input: this.#input }, ratings, options);
  }
}
