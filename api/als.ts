import { DataType } from 'apache-arrow';
import { DataError, UsageError } from '../engine/errors.ts';
import { computeDevice } from '../engine/devices.ts';
import { inDeviceScope } from '../engine/device-scope.ts';
import { explain } from '../engine/explain.ts';
import { keyCount } from '../engine/keys/key-column.ts';
import { andThen, executePlan, type LogicalPlan, operatorsOf, rootSource, runInto, schemaOf } from '../engine/logical-plan.ts';
import type { ExecutionContext } from '../engine/operator.ts';
import { type PhysicalPlan, withMeasures } from '../engine/physical-plan.ts';
import { type AlsInput, trainAls } from '../operators/als.ts';
import { type AlsParams, checkAlsParams } from '../operators/als-params.ts';
import { planAls, planDevices, type RatingsProfile } from '../operators/als-plan.ts';
import { type AlsChoices, chooseKernels, profileOfBlocks } from '../operators/kernel-choices.ts';
import { IndexIds } from '../operators/index-ids.ts';
import { collectKnownPairs } from '../operators/known-pairs.ts';
import { ProfileRatings } from '../operators/profile-ratings.ts';
import { buildRatingBlocks, buildUserBlock } from '../operators/rating-blocks.ts';
import { type BadRowPolicy, SelectRatings } from '../operators/select-ratings.ts';
import type { ColdStart } from '../operators/predict.ts';
import type { DuplicatePolicy } from '../operators/tasks.ts';
import { checkOptions, runOptionNames } from './check-options.ts';
import type { Dataset } from './dataset.ts';
import { requireBudget, rowsWithin } from './memory-budget.ts';
import { LostTrainingError } from './lost-training.ts';
import { Model } from './model.ts';
import { requireDataset } from './require-dataset.ts';
import type { RunOptions } from './session.ts';
import { trainingDevice } from './training-device.ts';

/** Parameters of `ALS`: Spark ML's names and defaults, ours beside them. A name that is not here is an error. */
export interface AlsOptions extends Partial<AlsParams> {
  /** Columns; defaults 'user', 'item', 'rating'. */
  readonly userCol?: string;
  readonly itemCol?: string;
  readonly ratingCol?: string;
  /** Needed by onDuplicates 'last' only; default 'timestamp'. */
  readonly timestampCol?: string;
  /** What predictions do with unknown users and items: 'nan' (default) or 'drop'. */
  readonly coldStartStrategy?: ColdStart;
  /** Several ratings of one pair: 'keep' all (default), 'error', the 'last' by timestamp, their 'mean' or 'sum'. */
  readonly onDuplicates?: DuplicatePolicy;
  /** Rows with null, NaN or infinite values: 'error' (default) or 'skip'. */
  readonly onBadRows?: BadRowPolicy;
}

export interface FitOptions extends RunOptions {
  /** Ratings that are not trained on, for the error after each iteration. */
  readonly validation?: Dataset;
}

/** Alternating least squares on explicit ratings with weighted-λ regularization. Immutable; `fit` may run many times. */
export class ALS {
  readonly params: AlsParams;
  readonly columns: { readonly user: string; readonly item: string; readonly rating: string; readonly timestamp: string };
  readonly coldStartStrategy: ColdStart;
  readonly onDuplicates: DuplicatePolicy;
  readonly onBadRows: BadRowPolicy;

  /** Throws UsageError naming the parameter that is unknown or out of range. */
  constructor(options: AlsOptions = {}) {
    const { userCol, itemCol, ratingCol, timestampCol, coldStartStrategy, onDuplicates, onBadRows, ...rest } = options;
    const { rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse, ...unknown } = rest;
    for (const name of Object.keys(unknown)) throw new UsageError(`unknown ALS parameter ${name}`);
    this.params = checkAlsParams({ rank, maxIter, regParam, seed, solver, cgSteps, biases, nonnegative, precision, kernel, earlyStop, targetRmse });
    this.columns = { user: userCol ?? 'user', item: itemCol ?? 'item', rating: ratingCol ?? 'rating', timestamp: timestampCol ?? 'timestamp' };
    this.coldStartStrategy = oneOf('coldStartStrategy', coldStartStrategy ?? 'nan', ['nan', 'drop']);
    this.onDuplicates = oneOf('onDuplicates', onDuplicates ?? 'keep', ['keep', 'error', 'last', 'mean', 'sum']);
    this.onBadRows = oneOf('onBadRows', onBadRows ?? 'error', ['error', 'skip']);
    if (timestampCol !== undefined && this.onDuplicates !== 'last') throw new UsageError("timestampCol acts only with onDuplicates 'last'");
  }

  /**
   * The physical plan for these ratings, printable by `explain` (or String()). Reads the ids once to count users and
   * items; allocates no factors. Throws CapacityError when the problem doesn't fit.
   */
  async plan(ratings: Dataset, options: FitOptions = {}): Promise<ExplainedPlan> {
    checkFit('plan', ratings, options);
    const { executor } = trainingDevice(ratings.session, this.params);
    const ctx = { ...ratings.session.context(options), executor };
    const summary = await runInto(this.#selected(ratings.plan), new ProfileRatings(), ctx);
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
    checkFit('fit', ratings, options);
    const { executor, text } = trainingDevice(ratings.session, this.params);
    const context = { ...ratings.session.context(options), executor };
    context.events({ type: 'note', text });
    return inDeviceScope(context, (ctx) => this.#fit(ratings, options, ctx));
  }

  async #fit(ratings: Dataset, options: FitOptions, ctx: ExecutionContext): Promise<Model> {
    const { session } = ratings;
    const started = performance.now();
    const maximumRows = rowsWithin(session.memoryBudget);
    if (options.validation) await this.#checkIdTypes(ratings, options.validation);
    const totalRows = await expectedRows(ratings.plan);
    const indexed = await runInto(this.#selected(ratings.plan), new IndexIds({ maximumRows, totalRows }), ctx);
    const { users, items } = indexed;
    const profile: RatingsProfile = { users: keyCount(users), items: keyCount(items), ratings: indexed.rows, input: describeInput(ratings.plan) };
    requireBudget(this.#plan(profile, ctx), session.memoryBudget);
    const { byUser, byItem, duplicates } = await buildRatingBlocks(indexed, this.onDuplicates, ctx);
    if (duplicates > 0) ctx.events({ type: 'note', text: `${duplicates.toLocaleString('en')} ratings repeat an earlier (user, item) pair; policy: ${this.onDuplicates}` });
    const input: AlsInput = { blocks: { byUser, byItem, duplicates }, users, items };
    const test = options.validation && (await this.#validation(options.validation, input, ctx));
    const device = computeDevice(ctx.executor);
    const known = device.choose === undefined ? profile : { ...profile, ...profileOfBlocks(input.blocks) };
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

  #selected(plan: LogicalPlan): LogicalPlan {
    const { user, item, rating, timestamp } = this.columns;
    const columns = this.onDuplicates === 'last' ? { user, item, rating, timestamp } : { user, item, rating };
    return andThen(plan, new SelectRatings(columns, this.onBadRows));
  }

  /** The validation set: its times, if it has any, do not matter. */
  #selectedPairs(plan: LogicalPlan): LogicalPlan {
    const { user, item, rating } = this.columns;
    return andThen(plan, new SelectRatings({ user, item, rating }, this.onBadRows));
  }

  /** Whether the ids of the validation set can be looked up among the training set's, before anything long is done. */
  async #checkIdTypes(ratings: Dataset, validation: Dataset): Promise<void> {
    const [train, test] = await Promise.all([this.#selected(ratings.plan), this.#selectedPairs(validation.plan)].map(schemaOf));
    for (const [i, column] of [this.columns.user, this.columns.item].entries()) {
      const [own, other] = [train.fields[i].type, test.fields[i].type];
      if (DataType.isUtf8(own) === DataType.isUtf8(other)) continue;
      throw new DataError(`ids are ${own} in the training set, but ${other} in the validation set`, { phase: 'read', column });
    }
  }

  async #validation(dataset: Dataset, { users, items }: AlsInput, ctx: ExecutionContext) {
    const stream = await executePlan(this.#selectedPairs(dataset.plan), ctx);
    const { indexed, coldPairs } = await collectKnownPairs(stream, users, items, ctx);
    const { byUser } = await buildUserBlock(indexed, 'keep', ctx);
    return { block: byUser, coldPairs };
  }
}

/** A physical plan that prints itself. */
export class ExplainedPlan {
  readonly plan: PhysicalPlan;

  constructor(plan: PhysicalPlan) {
    this.plan = plan;
  }

  toString(): string {
    return explain(this.plan);
  }

  toJSON(): PhysicalPlan {
    return this.plan;
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

function checkFit(method: 'fit' | 'plan', ratings: Dataset, options: FitOptions): void {
  requireDataset(ratings, `ALS.${method}`);
  checkOptions(`ALS.${method}`, options, ['validation', ...runOptionNames], '{ validation: dataset }');
  if (options.validation !== undefined) requireDataset(options.validation, `the option validation of ALS.${method}`);
}

function oneOf<T extends string>(name: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  throw new UsageError(`${name} must be one of ${allowed.join(', ')}, got ${String(value)}`);
}

async function expectedRows(plan: LogicalPlan): Promise<number | undefined> {
  if (operatorsOf(plan).length > 0) return undefined;
  return (await rootSource(plan).statistics?.())?.rows;
}

function describeInput(plan: LogicalPlan): string {
  return [rootSource(plan).name, ...operatorsOf(plan).map((operator) => operator.name), 'select-ratings'].join(' > ');
}
