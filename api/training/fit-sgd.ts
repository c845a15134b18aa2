import { counted } from '../../engine/format.ts';
import { isDeepStrictEqual } from 'node:util';
import { computingOf, type PlanDevices, planDevices } from '../../engine/run/devices.ts';
import { UsageError } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { type HeldOutOptions, HeldOutPairs } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import { ratingsOf } from '../../operators/ratings/ratings.ts';
import { pairsByPosition } from '../../operators/sgd/data/by-position.ts';
import { type Baselines, baselinesOf, type DampedMeans } from '../../operators/evaluation/baselines.ts';
import type { RatingsProfile } from '../../operators/planner/profile.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { sgdMatrices, trainSgd } from '../../operators/sgd/train.ts';
import { convergenceReport } from '../../operators/sgd/schedules/convergence.ts';
import {
  loadSgdData,
  loadSgdTest,
  meansByPosition,
  type LoadedSgdData,
} from '../../operators/sgd/data/data.ts';
import { continueFrom } from '../../operators/sgd/data/continue.ts';
import { schedulesFor } from '../../operators/sgd/schedules/choose-schedule.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import { planSgd, scheduleOf, type SgdPlanDetails } from '../../operators/sgd/plan.ts';
import type { SgdSchedule } from '../../operators/sgd/schedules/schedule.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import { ProfileRatings } from '../../operators/ratings/profile-ratings.ts';
import { solveNewRows } from '../../operators/sgd/data/solve-new-rows.ts';
import { type WidenedRatings, widenRatings } from '../../operators/ratings/ids/widen-ratings.ts';
import { planCheckpoints } from '../../operators/training/planned-checkpoints.ts';
import type { Dataset } from '../dataset.ts';
import { intervalOf } from './checkpoints/checkpoint-options.ts';
import { fingerprintOf } from './checkpoints/data-fingerprint.ts';
import type { RunCheckpoints } from './checkpoints/run-checkpoints.ts';
import { withCheckpoints } from './checkpoints/with-checkpoints.ts';
import { ExplainedPlan } from './plans/explained-plan.ts';
import {
  type GivenPlan,
  ifFits,
  plannedDevices,
  shown,
  requireFits,
  requirePlan,
  requireProblem,
  requireSizes,
} from './plans/given-plan.ts';
import {
  budgetOf,
  type ContinuedFit,
  isKept,
  loadedOnce,
  makeRoom,
  noteBytes,
  ownBlock,
  ownRatings,
} from './kept-ratings.ts';
import { lookAt, type ValidationPairs } from './look-at-ratings.ts';
import { requireBudget } from './plans/memory-budget.ts';
import type { Model } from '../model.ts';
import { describeInput, type FitOptions, type RatingInput } from '../rating-input.ts';
import { rankHeldOut, ranksHeldOut } from './rank-held-out.ts';
import { checkRankUsers } from '../validation/rank-users.ts';
import { trainedModel } from './trained-model.ts';
import { AwaitedDevices, trainingDevice } from './training-device.ts';

/** Most workers of a plan's schedule, as many as `workers` of a session allows. */
const MOST_WORKERS = 256;

export interface SgdFit {
  readonly params: SgdParams;
  readonly input: RatingInput;
  /** The model that training goes on from: its ids are kept beside those of the ratings. */
  readonly start?: FactorModel;
  /** Ratings of each item of that model, where it tells. */
  readonly startCounts?: Uint32Array;
  /** Damped means of the ratings that it was trained on, where it tells. */
  readonly startMeans?: DampedMeans | undefined;
  /** σ of the ratings that it was trained on, where it tells. */
  readonly startDeviation?: number;
  /** λ of the steps of both sides, where it is not that of `params`, by which new rows are solved. */
  readonly stepLambda?: number;
}

/** Trains by SGD with holdings of its own. */
export async function fitSgd(fit: SgdFit, ratings: Dataset, options: ContinuedFit): Promise<Model> {
  const context = ratings.session.context(options);
  const opened = await AwaitedDevices.of(ratings.session, fit.params, context, options.plan !== undefined);
  const found = await foundSets(fit, ratings, options, context);
  return Holdings.ofRun(
    context,
    (ctx) =>
      withCheckpoints(options, { algorithm: 'sgd', params: fit.params }, ctx, (checkpoints) =>
        fitHeld(
          fit,
          found.ratings,
          { ...options, validation: found.validation },
          { opened, checkpoints },
          ctx,
        ),
      ),
    ratings.session.tidies,
  );
}

async function foundSets(
  { input }: SgdFit,
  ratings: Dataset,
  { validation }: FitOptions,
  ctx: ExecutionContext,
) {
  return {
    ratings: await input.found(ratings, ctx),
    validation: validation && (await input.foundTest(validation, ctx)),
  };
}

/**
 * The plan of such a training: reads the ids once, to count users and items, among those of the model that it
 * goes on from.
 */
export async function planSgdFit(fit: SgdFit, given: Dataset, options: FitOptions): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  trainingDevice(given.session.device, context.executor, fit.params);
  const { ratings, validation } = await foundSets(fit, given, options, context);
  return Holdings.ofRun(context, async (ctx) => {
    const profile = fit.start === undefined ? await profileOf(fit, ratings, ctx) : undefined;
    const { details, ...indexed } = profile
      ? { profile, details: {} }
      : await indexFit(fit, ratings, { ...options, validation }, ctx);
    const planned = planSgd(
      { ...indexed.profile, testRatings: validation && (await fit.input.countPairs(validation)) },
      stepParams(fit),
      planDevices(ctx.executor),
      details,
    );
    const plan = planCheckpoints(planned, intervalOf(options));
    requireBudget(plan, {
      ...budgetOf(ratings),
      loading: await fit.input.loadingNeed(ratings, indexed.profile.ratings, ctx.signal),
    });
    return new ExplainedPlan(plan);
  });
}

/** The parameters of the epochs, for the plan and the training. */
function stepParams({ params, start, stepLambda }: SgdFit): SgdParams {
  const lambda =
    stepLambda === undefined
      ? {}
      : { regParam: stepLambda, regParamUsers: undefined, regParamItems: undefined };
  return start === undefined ? params : { ...params, ...lambda, regOffset: 0, biasDamping: 0 };
}

async function profileOf(
  { input }: SgdFit,
  ratings: Dataset,
  ctx: ExecutionContext,
): Promise<RatingsProfile> {
  const { users, items, ratings: count } = await runInto(input.selected(ratings), new ProfileRatings(), ctx);
  return { users, items, ratings: count, input: describeInput(ratings.plan) };
}

/**
 * False where ratings stay in one block: those that are kept from fit to fit, and those with which a model
 * goes on.
 */
function mayBeInBands({ start }: SgdFit, ratings: Dataset): boolean {
  return start === undefined && !isKept(ratings);
}

/** Ratings numbered, among a model's ids where there is one, and the details that a plan needs. */
async function indexFit(fit: SgdFit, ratings: Dataset, options: FitOptions, ctx: ExecutionContext) {
  const { input, start, stepLambda } = fit;
  const own = await input.index(ratings, options.validation, ctx, { inBands: mayBeInBands(fit, ratings) });
  const widened = start && (await widenRatings(own, start, ctx));
  const indexed = widened?.indexed ?? own;
  const { users, items, itemCounts, userCounts } = indexed;
  if (start) {
    const fresh = [keyCount(users) - keyCount(start.users), keyCount(items) - keyCount(start.items)];
    ctx.events({
      type: 'note',
      text: `training goes on from a model of ${counted(keyCount(start.users), 'user')} and ${counted(keyCount(start.items), 'item')}; new: ${counted(fresh[0], 'user')}, ${counted(fresh[1], 'item')}`,
    });
  }
  const details: SgdPlanDetails = {
    itemCounts,
    userCounts,
    ...(start ? { start: stepLambda === 0 ? 'a model, by steps of λ = 0' : 'a model' } : {}),
  };
  const profile: RatingsProfile = {
    users: keyCount(users),
    items: keyCount(items),
    ratings: indexed.rows,
    input: describeInput(ratings.plan),
  };
  return { indexed, widened, profile, details };
}

async function fitHeld(
  fit: SgdFit,
  ratings: Dataset,
  options: ContinuedFit,
  {
    opened,
    checkpoints,
  }: { readonly opened: AwaitedDevices; readonly checkpoints: RunCheckpoints | undefined },
  ctx: ExecutionContext,
): Promise<Model> {
  using _ = ctx.metrics.begin('plan');
  const { params, input, start } = fit;
  const { session } = ratings;
  const started = performance.now();
  const given = options.plan && requirePlan(options.plan);
  if (given) requireProblem(given, { algorithm: 'sgd', params });
  if (given) plannedDevices(given, planDevices(ctx.executor));
  const form = `sgd ${params.seed} ${params.biases} ${input.form(ratings)}`;
  makeRoom(ratings, form);
  const { indexed, widened, profile, details } = await opened.during(
    ctx,
    (reading) => loadedOnce(ratings, `${form} index`, () => indexFit(fit, ratings, options, reading)),
    () => {},
  );
  const devices = given ? plannedDevices(given, planDevices(ctx.executor)) : planDevices(ctx.executor);
  const { users, items, itemCounts, userCounts } = indexed;
  const expected = planCheckpoints(planSgd(profile, params, devices, details), checkpoints?.interval);
  requireBudget(expected, budgetOf(ratings));
  noteBytes(ratings, form, expected);
  const bands = scheduleOf(expected).inBands ? scheduleOf(expected) : undefined;
  const from = start && widened && continueFrom(start, widened, params);
  const loadedData = await loadedOnce(ratings, `${form} data`, () =>
    loadSgdData(
      indexed,
      {
        duplicates: input.onDuplicates,
        seed: params.seed,
        biases: params.biases,
        mean: from?.mean,
        leastDeviation: from?.leastDeviation,
        means: earlierMeans(fit, widened),
        bands: bands?.rowBands,
      },
      ctx,
    ),
  );
  const data = { ...loadedData, ratings: await ownRatings(ratings, loadedData.ratings, ctx) };
  const ratingDeviation = fit.startDeviation ?? data.scale.deviation;
  if (from) await solveNewRows(from, data, { params, deviation: ratingDeviation }, ctx);
  input.tellDuplicates(data.duplicates, ctx);
  const { validation } = options;
  const test =
    validation &&
    (await loadedOnce(validation, form, () => validationOf(validation, fit, indexed, data, ctx)));
  const looked = lookAt(
    data.facts,
    {
      duplicates: data.duplicates,
      policy: input.onDuplicates,
      means: hasMeans(fit) ? meansByPosition(data) : undefined,
      test,
      update: start !== undefined,
    },
    ctx,
  );
  const known = { ...profile, ratings: data.ratings.ratings, testRatings: test?.block.ratings };
  const steps = stepParams(fit);
  const replan = (compute: readonly DeviceInfo[]) =>
    planCheckpoints(planSgd(known, steps, { ...devices, compute }, details), checkpoints?.interval);
  const read: RatingsProfile = {
    ...known,
    ratings: indexed.rows,
    testRatings: test && test.block.ratings + test.coldPairs,
  };
  if (given) requireSizes(given, [known, read]);
  const before = await checkpoints?.begin(
    await fingerprintOf({ users, items, ratings: data.ratings, test: test?.block }, ctx),
    sgdMatrices(data, steps),
  );
  const scheduleIn = (one: GivenPlan) => plannedSchedule(one, [known, read], params, devices);
  const schedule = given ? scheduleIn(given) : before && (await ifFits(() => scheduleIn(before)));
  // Ratings in bands have been sorted for that schedule.
  const used = schedule ?? bands;
  const chosen = used ? { ...details, schedule: used } : details;
  const plan = planCheckpoints(planSgd(known, steps, devices, chosen), checkpoints?.interval);
  checkpoints?.planned(plan, before);
  if (given) requireFits(given, [plan, planSgd(read, steps, devices, chosen)]);
  const convergence = convergenceReport({ ...known, itemCounts, userCounts }, scheduleOf(plan));
  ctx.events({ type: 'note', text: `schedule ${scheduleOf(plan).kind}: ${convergence.text}` });
  if (convergence.warning !== undefined) ctx.events({ type: 'warning', text: convergence.warning });
  ctx.events({ type: 'plan', plan });
  const heldOut =
    validation && test && ranksHeldOut(params, options)
      ? await loadedOnce(validation, `${form} held out ${options.rankUsers}`, () =>
          heldOutOf(data, test.block, { seed: params.seed, rankUsers: checkRankUsers(options) }, ctx),
        )
      : undefined;
  const loaded = performance.now();
  const compute = computingOf(plan, devices, 'sgd-epoch');
  const result = await trainSgd(
    { data, test: test && validation && (await ownBlock(validation, test.block, ctx)), start: from?.factors },
    steps,
    {
      checkpoints,
      rankUsers: checkRankUsers(options),
      fetched: () => heldOut === undefined && session.trained(),
      devices: compute,
      plan: (left) => (left === compute ? plan : replan(left)),
    },
    ctx,
  );
  const ranked = heldOut && (await rankHeldOut(heldOut, result, options, ctx));
  if (heldOut) session.trained();
  const planned = start ? { ...plan, choices: { ...plan.choices, start: 'a model' } } : plan;
  return trainedModel(
    {
      about: { algorithm: 'sgd', params },
      session,
      input,
      columns: start ? input.columns : input.columnsOf(ratings),
      users,
      items,
      itemCounts: countsWith(fit, itemCounts, widened?.items),
      userCounts: start ? undefined : new Uint32Array(userCounts),
      ratings: data.ratings.ratings,
      duplicates: data.duplicates,
      test,
      looked,
      result: { ...result, ratingDeviation },
      planned,
      resumedFrom: checkpoints?.resumedFrom,
      started,
      loaded,
      ranked,
      tuning: options.continued?.tuning,
    },
    ctx,
  );
}

/** The held-out pairs by position, to be ranked by the model. */
async function heldOutOf(
  data: LoadedSgdData,
  test: RatingBlock,
  options: HeldOutOptions,
  ctx: ExecutionContext,
): Promise<HeldOutPairs | undefined> {
  const pairs = await pairsByPosition(data, test, ctx);
  return HeldOutPairs.of({ ...pairs, train: ratingsOf(pairs.train) }, options, ctx);
}

/**
 * Ratings of each item; with those of the model that training went on from, where it tells, at their new
 * places.
 */
function countsWith(
  { start, startCounts }: SgdFit,
  own: Int32Array,
  places: Uint32Array | undefined,
): Uint32Array | undefined {
  const counts = new Uint32Array(own);
  if (start === undefined) return counts;
  startCounts?.forEach((count, item) => (counts[places?.[item] ?? item] += count));
  return startCounts && counts;
}

/**
 * The schedule that a plan names: one of those that suit the ratings, at as many workers as the plan has.
 * Throws UsageError for another.
 */
function plannedSchedule(
  { choices }: GivenPlan,
  profiles: readonly RatingsProfile[],
  params: SgdParams,
  { compute }: PlanDevices,
): SgdSchedule {
  const { reasons, ...planned } = (choices.schedule ?? {}) as Partial<SgdSchedule>;
  const { workers = 0, rowBands, columnBands, kind } = planned;
  const isCount = Number.isInteger(workers) && workers >= 1 && workers <= MOST_WORKERS;
  const devices = compute.map((device) =>
    device.kind === 'cpu' && isCount ? { ...device, parallelism: workers } : device,
  );
  const suiting = profiles.flatMap((profile) => [...schedulesFor(profile, params, devices)]);
  const found = suiting.find(({ reasons: _reasons, ...schedule }) =>
    isDeepStrictEqual(JSON.parse(JSON.stringify(schedule)), planned),
  );
  if (found === undefined) {
    throw new UsageError(
      `the plan does not fit: its schedule ${[kind, rowBands, columnBands, workers].map(shown).join(', ')} (kind, bands of rows, of columns, workers) is none for these ratings, parameters and devices`,
      { phase: 'plan', advice: 'Make the plan anew' },
    );
  }
  return Array.isArray(reasons) && reasons.every((reason) => typeof reason === 'string')
    ? { ...found, reasons }
    : found;
}

/** The means of the model that is continued, at the places of its ids among all; NaN for new ones. */
function earlierMeans({ startMeans }: SgdFit, widened: WidenedRatings | undefined): DampedMeans | undefined {
  if (startMeans === undefined || widened === undefined) return undefined;
  const placed = (means: Float32Array, places: Uint32Array, ids: KeyColumn) => {
    const all = new Float32Array(keyCount(ids)).fill(Number.NaN);
    for (let i = 0; i < means.length; i++) all[places[i]] = means[i];
    return all;
  };
  const { users, items, indexed } = widened;
  return {
    mean: startMeans.mean,
    users: placed(startMeans.users, users, indexed.users),
    items: placed(startMeans.items, items, indexed.items),
  };
}

/** The new ratings of a model give no fair means alone: the model knows older ones. */
function hasMeans({ start, startMeans }: SgdFit): boolean {
  return start === undefined || startMeans !== undefined;
}

async function validationOf(
  dataset: Dataset,
  fit: SgdFit,
  { users, items }: Pick<FactorModel, 'users' | 'items'>,
  data: LoadedSgdData,
  ctx: ExecutionContext,
): Promise<ValidationPairs> {
  const { indexed, coldPairs } = await fit.input.knownPairs(dataset, users, items, ctx);
  let baselines: Baselines | undefined;
  const look = async (raw: RatingBlock) =>
    void (baselines = hasMeans(fit) ? await baselinesOf(raw, data.facts.means) : undefined);
  const block = await loadSgdTest(indexed, data, ctx, look);
  return { block, coldPairs, baselines };
}
