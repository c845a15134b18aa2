import { computeDevice } from '../engine/devices.ts';
import { inDeviceScope } from '../engine/device-scope.ts';
import { UsageError } from '../engine/errors.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { runInto } from '../engine/logical-plan.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { type PhysicalPlan, withMeasures } from '../engine/physical-plan.ts';
import { type AlsInput, trainAls } from '../operators/als.ts';
import { type AlsParams, checkAlsParams } from '../operators/als/params.ts';
import { planAls, planDevices, type RatingsProfile } from '../operators/als-plan.ts';
import { type AlsChoices, chooseKernels, profileOfBlocks } from '../operators/kernel-choices.ts';
import type { ColdStart } from '../operators/predict.ts';
import { ProfileRatings } from '../operators/profile-ratings.ts';
import { buildRatingBlocks, buildUserBlock } from '../operators/rating-blocks.ts';
import type { BadRowPolicy } from '../operators/select-ratings.ts';
import type { DuplicatePolicy } from '../operators/tasks.ts';
import { tuneKernels } from '../operators/tune-kernels.ts';
import type { Dataset } from './dataset.ts';
import { ExplainedPlan } from './explained-plan.ts';
import { LostTrainingError } from './lost-training.ts';
import { requireBudget } from './memory-budget.ts';
import { Model } from './model.ts';
import { checkFit, describeInput, type FitOptions, RatingInput, type RatingOptions, ratingOptionNames } from './rating-input.ts';
import { trainingDevice } from './training-device.ts';

/** Parameters of `ALS`: Spark ML's names and defaults, ours beside them. A name that is not here is an error. */
export interface AlsOptions extends Partial<AlsParams>, RatingOptions {}

/** Alternating least squares on explicit ratings with weighted-λ regularization. Immutable; `fit` may run many times. */
export class ALS {
  readonly params: AlsParams;
  readonly columns: { readonly user: string; readonly item: string; readonly rating: string; readonly timestamp: string };
  readonly coldStartStrategy: ColdStart;
  readonly onDuplicates: DuplicatePolicy;
  readonly onBadRows: BadRowPolicy;
  readonly #input: RatingInput;

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: AlsOptions = {}) {
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } = options;
    const { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse, ...unknown } = rest;
    const own = { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse };
    for (const name of Object.keys(unknown)) throw new UsageError(`unknown ALS parameter ${name}`, { advice: `There are: ${[...Object.keys(own), ...ratingOptionNames].join(', ')}` });
    this.params = checkAlsParams(own);
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
    checkFit('ALS.plan', ratings, options);
    const { executor } = trainingDevice(ratings.session, this.params);
    const ctx = { ...ratings.session.context(options), executor };
    const summary = await runInto(this.#input.selected(ratings.plan), new ProfileRatings(), ctx);
    const testRatings = options.validation === undefined ? undefined : await options.validation.count();
    const { users, items, ratings: count, userDegrees, itemDegrees, rating } = summary;
    const largestRating = rating && Math.max(Math.abs(rating.least), Math.abs(rating.most));
    const known = { users, items, ratings: count, longestUser: userDegrees.most, longestItem: itemDegrees.most, largestRating };
    const choices = await chooseKernels(computeDevice(ctx.executor), known, this.params);
    const plan = this.#plan({ ...known, testRatings, input: describeInput(ratings.plan) }, ctx, choices);
    requireBudget(plan, ratings.session.memoryBudget);
    return new ExplainedPlan(plan);
  }

  /**
   * Trains a model. Events tell of every phase and iteration; `signal` cancels.
   * Throws DataError for unusable data, CapacityError when it doesn't fit, DivergedError naming iteration, side and row,
   * DeviceLostError when a GPU went away: LostTrainingError, with a model, where an iteration's factors had been copied from it.
   */
  async fit(ratings: Dataset, options: FitOptions = {}): Promise<Model> {
    checkFit('ALS.fit', ratings, options);
    const { executor, text } = trainingDevice(ratings.session, this.params);
    const context = { ...ratings.session.context(options), executor };
    context.events({ type: 'note', text });
    return inDeviceScope(context, (ctx) => this.#fit(ratings, options, ctx));
  }

  async #fit(ratings: Dataset, options: FitOptions, ctx: ExecutionContext): Promise<Model> {
    const { session } = ratings;
    const started = performance.now();
    // A kernel that is not there is found out before the ratings are read.
    if (this.params.kernel !== undefined) await chooseKernels(computeDevice(ctx.executor), { users: 1, items: 1, ratings: 1 }, this.params);
    const indexed = await this.#input.index(ratings, options.validation, ctx);
    const { users, items } = indexed;
    const profile: RatingsProfile = { users: keyCount(users), items: keyCount(items), ratings: indexed.rows, input: describeInput(ratings.plan) };
    requireBudget(this.#plan(profile, ctx), session.memoryBudget);
    const { byUser, byItem, duplicates } = await buildRatingBlocks(indexed, this.onDuplicates, ctx);
    if (duplicates > 0) ctx.events({ type: 'note', text: `${duplicates.toLocaleString('en')} ratings repeat an earlier (user, item) pair; policy: ${this.onDuplicates}` });
    const input: AlsInput = { blocks: { byUser, byItem, duplicates }, users, items };
    const test = options.validation && (await this.#validation(options.validation, input, ctx));
    const device = computeDevice(ctx.executor);
    const known = device.choose === undefined ? profile : { ...profile, ...profileOfBlocks(input.blocks) };
    await tuneKernels(input.blocks, known, this.params, 'where-it-pays', ctx);
    const choices = await chooseKernels(device, known, this.params);
    const plan = this.#plan({ ...known, ratings: byUser.ratings, testRatings: test?.block.ratings }, ctx, choices);
    const loaded = performance.now();
    const result = await trainAls({ ...input, test: test?.block, choices }, this.params, ctx);
    const seconds = { load: (loaded - started) / 1000, train: (performance.now() - loaded) / 1000 };
    const model = new Model({
      rank: this.params.rank + (this.params.biases ? 2 : 0),
      users,
      items,
      userFactors: result.userFactors,
      itemFactors: result.itemFactors,
      columns: { user: this.columns.user, item: this.columns.item, rating: this.columns.rating, prediction: 'prediction' },
      coldStartStrategy: this.coldStartStrategy,
      session,
      training: {
        algorithm: 'als',
        params: this.params,
        ratings: byUser.ratings,
        duplicates,
        iterations: result.iterations,
        bestIteration: result.bestIteration,
        testPairs: test && test.block.ratings + test.coldPairs,
        coldPairs: test?.coldPairs,
        seconds,
        plan: withMeasures(plan, ctx.metrics),
      },
    });
    if (result.lost) throw new LostTrainingError(result.lost, model, result.bestIteration);
    return model;
  }

  #plan(profile: RatingsProfile, { executor }: ExecutionContext, choices?: AlsChoices): PhysicalPlan {
    const { device, host } = planDevices(executor);
    return planAls(profile, this.params, device, { host, choices });
  }

  async #validation(dataset: Dataset, { users, items }: AlsInput, ctx: ExecutionContext) {
    const { indexed, coldPairs } = await this.#input.knownPairs(dataset, users, items, ctx);
    const { byUser } = await buildUserBlock(indexed, 'keep', ctx);
    return { block: byUser, coldPairs };
  }
}
