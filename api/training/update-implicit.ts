import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice, planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type SizedAlsParams, sizedParams } from '../../operators/als/als-params.ts';
import { readWeight, weightedRatings } from '../../operators/als/implicit/rating-weight.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { trainAls } from '../../operators/als/train.ts';
import type { DampedMeans } from '../../operators/evaluation/rating-facts.ts';
import { namesOf } from '../../operators/params/table.ts';
import { requireBudget } from '../../operators/planner/memory-budget.ts';
import { widenRatings } from '../../operators/ratings/ids/relabel.ts';
import type { Ratings } from '../../operators/ratings/ratings.ts';
import { sortRatings } from '../../operators/ratings/sort-ratings.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import { reportDuplicates } from '../../operators/training/fit.ts';
import { runOptionNames } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import { checkFit } from '../fit-options.ts';
import { ratedRows } from '../histories.ts';
import type { Model } from '../model.ts';
import { describeInput, RatingInput, ratingOptionNames, type RatingOptions } from '../rating-input.ts';
import { ExplainedPlan } from './plans/explained-plan.ts';
import { trainedModel } from './trained-model.ts';
import { unratedAsOnes } from './unrated-as-ones.ts';
import type { UpdateOptions } from './update-options.ts';

/** Most steps of conjugate gradients. They end earlier when float32 precision allows no further progress. */
const STEPS = 30;

export function isImplicit({ params }: JsonObject): boolean {
  return (params as JsonObject | null | undefined)?.implicitPrefs === true;
}

/**
 * Updates a model of implicit data by one round of ALS over new ratings: items, then users. The row x of a
 * user becomes the minimum of
 *
 *     (the terms of the new ratings in J) + (x - x_old)ᵀ (G + λ n^ν I) (x - x_old)
 *
 * with the Gram matrix G of the items and the λ of the model. The last term replaces the old ratings, which
 * are therefore not needed: it approximates the old J near its minimum. A new user's x_old is 0, which makes
 * this a fold-in. Rows without new ratings do not change.
 */
export async function updateImplicit(
  updated: UpdatedModel,
  ratings: Dataset,
  options: UpdateOptions,
): Promise<Model> {
  return Holdings.ofRun(cpuOf(ratings, options), async (ctx) => {
    const started = performance.now();
    const { params, input, plan, devices, indexed, blocks, start, itemCounts, rated } = await prepare(
      updated,
      ratings,
      options,
      ctx,
    );
    ctx.events({ type: 'plan', plan });
    const loaded = performance.now();
    const { users, items } = indexed;
    const { byUser, byItem, duplicates } = blocks;
    const result = await trainAls(
      { byUser, byItem, users, items },
      params,
      { devices: devices.compute, plan: () => plan, start },
      ctx,
    );
    return trainedModel(
      {
        about: { algorithm: 'als', params },
        users,
        items,
        itemCounts,
        userCounts: undefined,
        ratings: byUser.ratings,
        duplicates,
        test: undefined,
        findings: { warnings: [] },
        result,
        planned: plan,
        loaded,
        ratingWeight: readWeight(updated.model.metadata.ratingWeight),
      },
      { session: ratings.session, input, columns: input.columns, rated, started },
      ctx,
    );
  });
}

/** The plan of such an update. */
export async function planImplicitUpdate(
  updated: UpdatedModel,
  ratings: Dataset,
  options: UpdateOptions,
): Promise<ExplainedPlan> {
  return Holdings.ofRun(
    cpuOf(ratings, options),
    async (ctx) => new ExplainedPlan((await prepare(updated, ratings, options, ctx)).plan),
  );
}

/** The context with only the CPU: the work is small, and only the CPU has the kernel. */
function cpuOf(ratings: Dataset, options: UpdateOptions): ExecutionContext {
  const context = ratings.session.context(options);
  const { executor } = context;
  return {
    ...context,
    executor: { devices: [hostDevice(executor)], memory: executor.memory, close: () => executor.close() },
  };
}

/** The rating options. Throws UsageError for another option, such as a parameter of SGD. */
function checkUpdate(given: Dataset, options: UpdateOptions): RatingOptions {
  const { signal, onEvent, ...rest } = options;
  checkFit('update', given, { signal, onEvent });
  const names: readonly string[] = [...ratingOptionNames, ...runOptionNames];
  const foreign = Object.keys(rest).find(
    (name) => !names.includes(name) && rest[name as keyof typeof rest] !== undefined,
  );
  if (foreign !== undefined) {
    const known = [...namesOf<string>(sgdTable), 'validation'].includes(foreign);
    if (known)
      throw new UsageError(
        `${foreign} cannot be used on a model of implicit data, which is updated by one round of ALS ` +
          `with its own parameters`,
        { advice: 'Leave it out' },
      );
    throw new UsageError(`update has no option ${foreign}`, { advice: `There are: ${names.join(', ')}` });
  }
  return rest;
}

async function prepare(
  { model, factors }: UpdatedModel,
  given: Dataset,
  options: UpdateOptions,
  ctx: ExecutionContext,
) {
  const rest = checkUpdate(given, options);
  const input = new RatingInput({ coldStartStrategy: model.coldStartStrategy, ...rest }, model.columns);
  const found = await input.found(given, ctx);
  const ratings = await unratedAsOnes(found, input.columnsOf(found).rating, ctx);
  const params = updateParams(model.metadata.params as unknown as SizedAlsParams, model.rank);
  const { indexed, users, items } = await widenRatings(
    await input.index(ratings, undefined, ctx),
    factors,
    ctx,
  );
  const read = await sortRatings(indexed, { duplicates: input.onDuplicates }, ctx);
  reportDuplicates(read.duplicates, input.onDuplicates, ctx);
  const itemCounts = sharedArray(Uint32Array, indexed.itemCounts.length);
  itemCounts.set(indexed.itemCounts);
  model.itemCounts?.forEach((count, at) => (itemCounts[items[at]] += count));
  const weight = readWeight(model.metadata.ratingWeight);
  const weighted = (rows: 'users' | 'items', ratings: Ratings) =>
    weightedRatings({ ratings, rows }, weight, { counts: itemCounts, keeps: false }, ctx);
  const blocks = {
    ...read,
    byUser: await weighted('users', read.byUser),
    byItem: await weighted('items', read.byItem),
  };
  const [m, n] = [keyCount(indexed.users), keyCount(indexed.items)];
  const start = {
    users: { values: placed(factors.userFactors, users, m, factors) },
    items: { values: placed(factors.itemFactors, items, n, factors) },
  };
  const devices = planDevices(ctx.executor);
  const plan = planAls(
    { users: m, items: n, ratings: blocks.byUser.ratings, input: describeInput(ratings.plan) },
    params,
    devices,
    undefined,
    { anchored: true },
  );
  requireBudget(plan, given.session);
  return {
    params,
    input,
    rated: ratedRows(ratings, input),
    devices,
    indexed,
    blocks,
    start,
    itemCounts: model.itemCounts && itemCounts,
    plan: { ...plan, choices: { ...plan.choices, start: 'a model' } },
  };
}

/** The parameters of the model's training that its equations depend on, with a single round. */
function updateParams(
  { alpha, regParam, regExponent, unobservedWeight, weight = 'spark', nonnegative, seed }: SizedAlsParams,
  rank: number,
): SizedAlsParams {
  const steps = nonnegative ? {} : ({ solver: 'cg', cgSteps: STEPS } as const);
  const params = checkAlsParams({
    implicitPrefs: true,
    rank,
    alpha,
    regParam,
    regExponent,
    unobservedWeight,
    weight,
    nonnegative,
    seed,
    maxIter: 1,
    ...steps,
  });
  return sizedParams(params, { users: 1, items: 1, ratings: 1 });
}

/** A matrix of `rows` rows in which the given rows are at their new positions; all other rows are 0. */
function placed(
  values: Float32Array,
  positions: Uint32Array,
  rows: number,
  { rank }: FactorModel,
): Float32Array {
  const all = sharedArray(Float32Array, rows * rank);
  positions.forEach((row, at) => all.set(values.subarray(at * rank, (at + 1) * rank), row * rank));
  return all;
}

/** The model that is trained further. */
export interface UpdatedModel {
  readonly model: Model;
  readonly factors: FactorModel;
  readonly means: DampedMeans | undefined;
}
