import { UsageError } from '../../engine/errors.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount, takeKeys, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { KeyLookup } from '../../engine/keys/key-lookup.ts';
import { sharedArray } from '../../engine/partition.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { hostDevice, planDevices } from '../../engine/run/devices.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type SizedAlsParams, sizedParams } from '../../operators/als/als-params.ts';
import { readWeight, weightedRatings } from '../../operators/als/implicit/rating-weight.ts';
import { checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { trainAls } from '../../operators/als/train.ts';
import { constantRow, givenRows, type ModelAttributes } from '../../operators/attributes/cold-rows.ts';
import type { DampedMeans } from '../../operators/evaluation/rating-facts.ts';
import { namesOf } from '../../operators/params/table.ts';
import { requireBudget } from '../../operators/planner/memory-budget.ts';
import type { IndexedRatings } from '../../operators/ratings/ids/number-ids.ts';
import { widenedCounts, widenRatings } from '../../operators/ratings/ids/relabel.ts';
import { recencyOfModel } from '../../operators/ratings/measure-recency.ts';
import type { Ratings } from '../../operators/ratings/ratings.ts';
import { sortRatings } from '../../operators/ratings/sort-ratings.ts';
import { type FactorModel, takeRows } from '../../operators/serving/factor-model.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import { reportDuplicates } from '../../operators/training/fit.ts';
import { runOptionNames } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import { checkFit } from '../fit-options.ts';
import { ratedRows } from '../histories.ts';
import type { ModelParts } from '../model-parts.ts';
import type { Model } from '../model.ts';
import { RatingInput, ratingOptionNames, type RatingOptions } from '../rating-input.ts';
import { extendedParts } from '../serving/cold-rows.ts';
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
 * are therefore not needed: it approximates the old J near its minimum. A user without old ratings has
 *
 *     (the terms of the new ratings in J) + xᵀ G x + λ n^ν ‖x - a‖²
 *
 * as in training, which makes this a fold-in: a is what the attributes predict, or 0. Rows without new ratings
 * do not change, and those that have none at all take no part.
 */
export async function updateImplicit(
  updated: UpdatedModel,
  ratings: Dataset,
  options: UpdateOptions,
): Promise<Model> {
  return Holdings.ofRun(cpuOf(ratings, options), async (ctx) => {
    const started = performance.now();
    const { params, input, plan, devices, indexed, blocks, start, counts, anchors, completed, rated } =
      await prepare(updated, ratings, options, ctx);
    ctx.events({ type: 'plan', plan });
    const loaded = performance.now();
    const { users, items } = indexed;
    const { byUser, byItem, duplicates } = blocks;
    const result = await trainAls(
      { byUser, byItem, users, items, anchors },
      params,
      { devices: devices.compute, plan: () => plan, start },
      ctx,
    );
    return trainedModel(
      {
        about: { algorithm: 'als', params },
        users,
        items,
        itemCounts: counts.items,
        userCounts: counts.users,
        ratings: byUser.ratings,
        duplicates,
        test: undefined,
        findings: { warnings: [] },
        result,
        planned: plan,
        loaded,
        ratingWeight: readWeight(updated.model.metadata.ratingWeight),
      },
      { session: ratings.session, input, columns: input.columns, rated, started, completed },
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
  { model, factors: all }: UpdatedModel,
  given: Dataset,
  options: UpdateOptions,
  ctx: ExecutionContext,
) {
  const rest = checkUpdate(given, options);
  const { metadata, coldStartStrategy } = model;
  const recency = recencyOfModel(metadata);
  const asked = new RatingInput({ coldStartStrategy, ...rest }, model.columns, recency);
  const found = await asked.found(given, ctx);
  const ratings = await unratedAsOnes(found, asked.columnsOf(found).rating, ctx);
  const input = await asked.weighed(ratings, ctx);
  const trained = metadata.params as unknown as SizedAlsParams;
  const params = updateParams({ ...trained, ...(input.weighing && { now: input.weighing.iso }) }, model.rank);
  const own = await input.index(ratings, undefined, ctx);
  const { factors, counts: earlier, completed } = takingPart(model, all, own);
  const { indexed, users, items } = await widenRatings(own, factors, ctx);
  const read = await sortRatings(indexed, { duplicates: input.onDuplicates }, ctx);
  reportDuplicates(read.duplicates, input.onDuplicates, ctx);
  const counts = {
    users: widenedCounts(indexed.userCounts, earlier.users, users),
    items: widenedCounts(indexed.itemCounts, earlier.items, items),
  };
  const weight = readWeight(model.metadata.ratingWeight);
  const weighing = { counts: counts.items ?? indexed.itemCounts, keeps: false };
  const weighted = async (rows: 'users' | 'items', ratings: Ratings) =>
    input.weighing === undefined ? weightedRatings({ ratings, rows }, weight, weighing, ctx) : ratings;
  const blocks = {
    ...read,
    byUser: await weighted('users', read.byUser),
    byItem: await weighted('items', read.byItem),
  };
  const [m, n] = [keyCount(indexed.users), keyCount(indexed.items)];
  const { user, item } = model.attributes ?? {};
  const start = {
    users: { values: placed(factors.userFactors, users, m, factors.rank, user) },
    items: { values: placed(factors.itemFactors, items, n, factors.rank, item) },
  };
  const anchors = {
    users: anchorsOf(earlier.users, users, m),
    items: anchorsOf(earlier.items, items, n),
  };
  const devices = planDevices(ctx.executor);
  const plan = planAls(
    { users: m, items: n, ratings: blocks.byUser.ratings, input: input.describe(ratings) },
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
    counts,
    anchors,
    completed,
    plan: { ...plan, choices: { ...plan.choices, start: 'a model' } },
  };
}

/** The parameters of the model's training that its equations depend on, with a single round. */
function updateParams(
  {
    alpha,
    regParam,
    regExponent,
    unobservedWeight,
    weight = 'spark',
    halfLife,
    now,
    nonnegative,
    seed,
  }: SizedAlsParams,
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
    halfLife,
    now,
    nonnegative,
    seed,
    maxIter: 1,
    ...steps,
  });
  return sizedParams(params, { users: 1, items: 1, ratings: 1 });
}

/**
 * The rows of a model that take part in an update, and the function that adds the others again: rows without
 * ratings, old or new, of which training knows nothing.
 */
function takingPart(
  { userCounts, itemCounts }: Model,
  { rank, users, items, userFactors, itemFactors }: FactorModel,
  rated: Pick<IndexedRatings, 'users' | 'items'>,
) {
  const side = (ids: KeyColumn, factors: Float32Array, counts: Uint32Array | undefined, own: KeyColumn) => {
    // Ids that cannot be compared are refused later.
    const comparable = (ids.type === 'utf8') === (own.type === 'utf8');
    const without = comparable && counts?.includes(0) ? new KeyLookup(own).positionsOf(ids) : undefined;
    if (without === undefined) return { ids, factors, counts, left: undefined };
    const isLeft = (row: number) => counts?.[row] === 0 && without[row] === UNKNOWN_KEY;
    const rows = Uint32Array.from(without.keys());
    const [kept, left] = [rows.filter((row) => !isLeft(row)), rows.filter(isLeft)];
    return {
      ids: takeKeys(ids, kept),
      factors: takeRows(factors, rank, kept),
      counts: Uint32Array.from(kept, (row) => counts?.[row] ?? 0),
      left: givenRows(takeKeys(ids, left), takeRows(factors, rank, left), rank),
    };
  };
  const user = side(users, userFactors, userCounts, rated.users);
  const item = side(items, itemFactors, itemCounts, rated.items);
  const left = { user: user.left, item: item.left };
  const completed = (parts: ModelParts) =>
    (['user', 'item'] as const).reduce((made, name) => {
      const own = left[name];
      return own ? extendedParts(made, name, own.rows, own).model : made;
    }, parts);
  return {
    factors: { rank, users: user.ids, items: item.ids, userFactors: user.factors, itemFactors: item.factors },
    counts: { users: user.counts, items: item.counts },
    completed,
  };
}

/** 1 for the rows of the model that have ratings, at their new positions. */
function anchorsOf(counts: Uint32Array | undefined, positions: Uint32Array, rows: number): Uint8Array {
  const anchors = sharedArray(Uint8Array, rows);
  positions.forEach((row, at) => (anchors[row] = counts?.[at] === 0 ? 0 : 1));
  return anchors;
}

/**
 * A matrix of `rows` rows in which the given rows are at their new positions. All other rows are what their
 * side's attributes predict of a row without any, or 0.
 */
function placed(
  values: Float32Array,
  positions: Uint32Array,
  rows: number,
  rank: number,
  attributes: ModelAttributes | undefined,
): Float32Array {
  const all = sharedArray(Float32Array, rows * rank);
  if (attributes)
    for (let row = 0; row < rows; row++) all.set(constantRow(attributes.coefficients), row * rank);
  positions.forEach((row, at) => all.set(values.subarray(at * rank, (at + 1) * rank), row * rank));
  return all;
}

/** The model that is trained further. */
export interface UpdatedModel {
  readonly model: Model;
  readonly factors: FactorModel;
  readonly means: DampedMeans | undefined;
}
