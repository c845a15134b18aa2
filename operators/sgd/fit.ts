import { UsageError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computeDevices, computingOf, type PlanDevices } from '../../engine/run/devices.ts';
import { heldOutPairs } from '../evaluation/ranking/held-out-ranking.ts';
import {
  type Baselines,
  baselinesOf,
  type DampedMeans,
  type RatingShape,
} from '../evaluation/rating-facts.ts';
import { differencesOf, type GivenPlan, valueText } from '../planner/given-plan.ts';
import { loadingStages } from '../planner/load-stages.ts';
import { requireBudget } from '../planner/memory-budget.ts';
import type { RatingsProfile } from '../planner/sizes.ts';
import type { KnownPairs } from '../ratings/ids/known-pairs.ts';
import { type WidenedRatings, widenedCounts, widenRatings } from '../ratings/ids/relabel.ts';
import { loadedOnce, ownBlock, ownRatings } from '../ratings/kept-forms.ts';
import { type RatingBlock, ratingsOf } from '../ratings/ratings.ts';
import type { FactorModel } from '../serving/factor-model.ts';
import { announceKernels } from '../tasks/run-tasks.ts';
import { type EndedTraining, type ValidationPairs, meansFit } from '../training/ended-training.ts';
import {
  devicesOf,
  factsStage,
  finalPlan,
  finishStages,
  type FitRatings,
  type FitRun,
  heldOutStage,
  lookAtRatings,
  type RatingMeans,
  type ReadRatings,
  readStages,
  resumeStage,
  type SortedData,
  trainStage,
  validationStage,
  warningsStage,
} from '../training/fit.ts';
import { planCheckpoints } from '../training/planned-training.ts';
import { type Continuation, continueFrom, solveNewRows } from './data/continue.ts';
import {
  pairsByPosition,
  type LoadedSgdData,
  loadSgdData,
  loadSgdTest,
  meansByPosition,
} from './data/data.ts';
import { sgdMatrices } from './factors.ts';
import type { SgdParams } from './params.ts';
import { planSgd, scheduleOf } from './plan.ts';
import { schedulesFor } from './schedules/choose-schedule.ts';
import { convergenceReport } from './schedules/convergence.ts';
import type { SgdSchedule } from './schedules/schedule.ts';
import type { SgdPlanDetails } from './stages.ts';
import { trainSgd } from './train.ts';

/** The parameters of a training by SGD, and the model that it continues, if any. */
export interface SgdTraining {
  readonly params: SgdParams;
  /** The model to continue; its users and items stay in the new model. */
  readonly start?: FactorModel;
  /** Number of ratings of each user and item of that model, if the model has them. */
  readonly startCounts?: Readonly<Record<'users' | 'items', Uint32Array | undefined>>;
  /** What that model's attributes predict of rows without any, for the sides that have attributes. */
  readonly startPriors?: Readonly<Record<'users' | 'items', Float32Array | undefined>>;
  /** Damped means of that model's ratings, if the model has them. */
  readonly startMeans?: DampedMeans | undefined;
  /** σ of that model's ratings, if the model has it. */
  readonly startDeviation?: number;
  /**
   * λ of the epochs, if it differs from the λ in `params`. New users and items are solved with the λ in
   * `params`.
   */
  readonly stepLambda?: number;
}

/** The parameters with which the epochs run, for the plan and the training. */
function stepParams({ params, start, stepLambda }: SgdTraining): SgdParams {
  const lambda =
    stepLambda === undefined
      ? {}
      : { regParam: stepLambda, regParamUsers: undefined, regParamItems: undefined };
  return start === undefined ? params : { ...params, ...lambda, regOffset: 0, biasDamping: 0 };
}

/** Ratings that have been read, and the details for a plan. */
export interface SgdRead extends ReadRatings {
  /** If a model is continued: the ratings and the model's factors, numbered together. */
  readonly widened: WidenedRatings | undefined;
  readonly details: SgdPlanDetails;
}

/**
 * Reads the ratings and numbers their ids, together with a model's ids if there is one. Also returns the
 * details for a plan.
 */
export async function indexSgd(
  fit: SgdTraining,
  ratings: Pick<FitRatings, 'index' | 'input' | 'kept'>,
  ctx: ExecutionContext,
): Promise<SgdRead> {
  const { start, stepLambda } = fit;
  // Ratings that exceed one block are sorted into bands; not if they are kept, or if a model is continued.
  const inBands = start === undefined && ratings.kept === undefined;
  const own = await ratings.index(ctx, { inBands });
  const widened = start && (await widenRatings(own, start, ctx));
  const indexed = widened?.indexed ?? own;
  const { users, items, itemCounts, userCounts } = indexed;
  if (start) {
    const fresh = [keyCount(users) - keyCount(start.users), keyCount(items) - keyCount(start.items)];
    ctx.events({
      type: 'note',
      text:
        `training continues from a model of ${counted(keyCount(start.users), 'user')} and ` +
        `${counted(keyCount(start.items), 'item')}; new: ${counted(fresh[0], 'user')}, ` +
        `${counted(fresh[1], 'item')}`,
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
    input: ratings.input,
  };
  return { indexed, widened, profile, details };
}

/** The expected plan, and what follows from it. */
interface SgdHome {
  readonly plan: PhysicalPlan;
  readonly devices: PlanDevices;
  /**
   * Set if the ratings exceed one block: the schedule of SGD steps into whose bands of rows they are sorted.
   */
  readonly bands: SgdSchedule | undefined;
  /** The factors from which training continues. */
  readonly from: Continuation | undefined;
}

interface SgdSorted extends SortedData {
  readonly data: LoadedSgdData;
}

/** Sorted ratings with what is known about them. */
interface SgdInspected {
  readonly read: SgdRead;
  readonly home: SgdHome;
  readonly sorted: SgdSorted;
  readonly facts: RatingShape;
  readonly test: ValidationPairs | undefined;
}

/**
 * Trains by SGD, from reading the ratings to the model. Each line is a stage of the scope, which starts when
 * the stages that it names have ended.
 */
export function fitSgd<Model>(training: SgdTraining, run: FitRun<Model>): Promise<Model> {
  const { scope, ratings } = run;
  const { params, start } = training;
  const form = `sgd ${params.seed} ${params.biases} ${ratings.form}`;
  const updates = start !== undefined;
  const fit = { algorithm: 'sgd', form, params, updates } as const;

  const { begun, opened, read } = readStages(run, fit, (ctx) => indexSgd(training, ratings, ctx));
  const home = scope.stage('plan sizes', { opened, read }, (found, ctx) => {
    const expected = expectedPlan(training, run, found.read, ctx);
    ratings.kept?.noteBytes(form, expected.plan);
    return expected;
  });
  scope.speculate(
    'compile kernels',
    { home },
    (found, ctx) => compileSteps(scheduleOf(found.home.plan), params, ctx),
    { need: 'none' },
  );
  const sorted = scope.stage(loadingStages.sort, { read, home }, (found, ctx) =>
    sortRatings(training, form, ratings, found, ctx),
  );
  const test = validationStage(run, fit, { begun, read, home, sorted }, ({ indexed, coldPairs }, by, ctx) =>
    validationPairs(training, { indexed, coldPairs }, by.data, ctx),
  );
  const heldOut = heldOutStage(run, fit, { read, home, sorted, test }, async (found, block, ctx) => {
    const pairs = await pairsByPosition(found.sorted.data, block, ctx);
    const options = { seed: params.seed, rankUsers: run.rankUsers };
    return heldOutPairs({ ...pairs, train: ratingsOf(pairs.train) }, options, ctx);
  });
  const facts = factsStage(run, fit, sorted, async ({ data: loaded }): Promise<RatingShape> => loaded.facts);
  const data = scope.stage('inspected', { read, home, sorted, facts, test }, (found) => found, {
    need: 'none',
  });
  const warnings = warningsStage(run, fit, data);
  const means = scope.stage('means', { data }, (found, ctx) =>
    lookAtRatings(ctx, async () => ratingMeans(training, found.data)),
  );

  const resumed = resumeStage(run, data, (found) => sgdMatrices(found.sorted.data, stepParams(training)));
  // The training may overwrite the ratings.
  const before = scope.stage('inspected before training', { data }, () => means.result, { need: 'none' });
  const known = scope.stage(
    'ratings to train on',
    { data, resumed },
    ({ data: { read: own, sorted: of, test: pairs } }): RatingsProfile => {
      return { ...own.profile, ratings: of.byRow.ratings, testRatings: pairs?.block.ratings };
    },
    { after: [heldOut, before] },
  );
  const chosen = scope.stage('plan', { data, known, resumed, warnings }, (found, ctx) =>
    sgdPlan(training, run, found, ctx),
  );
  const trained = trainStage(run, { data, heldOut, chosen }, (found, ctx) =>
    train(training, run, found, ctx),
  );
  return finishStages(run, { data, heldOut, warnings, means, chosen, trained }, (found, { plan }) => {
    const { indexed, widened } = found.read;
    const counts = (side: 'users' | 'items') => {
      const own = indexed[side === 'users' ? 'userCounts' : 'itemCounts'];
      return widened ? widenedCounts(own, training.startCounts?.[side], widened[side]) : new Uint32Array(own);
    };
    return {
      about: { algorithm: 'sgd', params },
      itemCounts: counts('items'),
      userCounts: counts('users'),
      planned: updates ? { ...plan, choices: { ...plan.choices, start: 'a model' } } : plan,
    };
  });
}

/**
 * The plan of a training: of the sizes after reading, and of the ratings that are trained on, with the
 * schedule in `details` if one is given or ratings are sorted by it. `interval`: epochs between two
 * checkpoints. Throws CapacityError.
 */
export function planTraining(
  training: SgdTraining,
  profile: RatingsProfile,
  devices: PlanDevices,
  details: SgdPlanDetails,
  interval: number | undefined,
): PhysicalPlan {
  return planCheckpoints(planSgd(profile, stepParams(training), devices, details), interval);
}

/** The plan that is expected from the sizes after reading. Throws CapacityError. */
function expectedPlan(
  training: SgdTraining,
  { given, budget, checkpoints }: FitRun<unknown>,
  { profile, details, widened }: SgdRead,
  ctx: ExecutionContext,
): SgdHome {
  const { start } = training;
  const devices = devicesOf(given, ctx);
  const plan = planTraining(training, profile, devices, details, checkpoints?.interval);
  requireBudget(plan, budget);
  const schedule = scheduleOf(plan);
  const from = start && widened && continueFrom(training, start, widened);
  return { plan, devices, bands: schedule.inBands ? schedule : undefined, from };
}

async function sortRatings(
  training: SgdTraining,
  form: string,
  ratings: FitRatings,
  { read: { indexed, widened }, home: { from, bands } }: { readonly read: SgdRead; readonly home: SgdHome },
  ctx: ExecutionContext,
): Promise<SgdSorted> {
  const { params } = training;
  const loaded = await loadedOnce(ratings.kept, `${form} data`, () =>
    loadSgdData(
      indexed,
      {
        duplicates: ratings.duplicates,
        seed: params.seed,
        biases: params.biases,
        mean: from?.mean,
        leastDeviation: from?.leastDeviation,
        means: earlierMeans(training, widened),
        bands: bands?.rowBands,
      },
      ctx,
    ),
  );
  const data = { ...loaded, ratings: await ownRatings(ratings.kept, loaded.ratings, ctx) };
  if (from) await solveNewRows(from, data, { params, deviation: deviationOf(training, data) }, ctx);
  return { data, byRow: data.ratings, duplicates: data.duplicates };
}

function deviationOf({ startDeviation }: SgdTraining, { scale }: LoadedSgdData): number {
  return startDeviation ?? scale.deviation;
}

async function validationPairs(
  training: SgdTraining,
  { indexed, coldPairs }: KnownPairs,
  data: LoadedSgdData,
  ctx: ExecutionContext,
): Promise<ValidationPairs> {
  let baselines: Baselines | undefined;
  const inspect = async (raw: RatingBlock) =>
    void (baselines = hasMeans(training) ? await baselinesOf(raw, data.facts.means) : undefined);
  const block = await loadSgdTest(indexed, data, ctx, inspect);
  return { block, coldPairs, ...(baselines && { baselines }) };
}

function ratingMeans(training: SgdTraining, { sorted: { data }, facts, test }: SgdInspected): RatingMeans {
  const means = hasMeans(training) && meansFit(facts) ? meansByPosition(data) : undefined;
  return { means, baselines: test?.baselines };
}

type SgdPlanned = Awaited<ReturnType<typeof sgdPlan>>;

/** The final plan, for the schedule that a given plan names, or else the planner's own. */
async function sgdPlan(
  training: SgdTraining,
  run: FitRun<unknown>,
  found: {
    readonly data: SgdInspected;
    readonly known: RatingsProfile;
    readonly resumed: Parameters<typeof finalPlan>[4];
  },
  { events }: ExecutionContext,
) {
  const { data, known, resumed } = found;
  const { home, read } = data;
  const { params } = training;
  const made = await finalPlan(run, { algorithm: 'sgd', params }, data, known, resumed, {
    planned: async (plan, profiles) => plannedSchedule(plan, profiles, params, home.devices),
    // The schedule into whose bands the ratings are sorted; else the planner chooses.
    choose: async () => home.bands,
    planOf: (profile, schedule) => {
      const details = schedule ? { ...read.details, schedule } : read.details;
      return planTraining(training, profile, home.devices, details, run.checkpoints?.interval);
    },
  });
  const { itemCounts, userCounts } = read.indexed;
  const schedule = scheduleOf(made.plan);
  const convergence = convergenceReport({ ...known, itemCounts, userCounts }, schedule);
  events({ type: 'note', text: `schedule ${schedule.kind}: ${convergence.text}` });
  if (convergence.warning !== undefined) events({ type: 'warning', text: convergence.warning });
  events({ type: 'plan', plan: made.plan });
  return { ...made, known };
}

/** Most workers of a plan's schedule, equal to the limit of a session's `workers`. */
const MOST_WORKERS = 256;

/**
 * The schedule that a plan names. Throws UsageError unless the planner would offer it for these ratings and
 * the plan's number of workers.
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
  const found = suiting.find(({ reasons: _reasons, ...schedule }) => {
    const asSaved = JSON.parse(JSON.stringify(schedule)) as JsonObject;
    return differencesOf('schedule', planned as unknown as JsonObject, asSaved).length === 0;
  });
  if (found === undefined) {
    throw new UsageError(
      `the plan does not fit: its schedule ` +
        `${[kind, rowBands, columnBands, workers].map(valueText).join(', ')} (kind, bands of rows, of ` +
        `columns, workers) does not exist for these ratings, parameters and devices`,
      { phase: 'plan', advice: 'Make the plan anew' },
    );
  }
  return Array.isArray(reasons) && reasons.every((reason) => typeof reason === 'string')
    ? { ...found, reasons }
    : found;
}

async function train(
  training: SgdTraining,
  run: FitRun<unknown>,
  found: { readonly data: SgdInspected; readonly chosen: SgdPlanned; readonly fetched: () => void },
  ctx: ExecutionContext,
): Promise<EndedTraining['result']> {
  const { read, home, sorted, test } = found.data;
  const { plan, known } = found.chosen;
  const compute = computingOf(plan, home.devices, 'sgd-epoch');
  // The schedule depends on the devices, so the plan for other devices makes its own.
  const planOn = (left: readonly DeviceInfo[]) =>
    planTraining(
      training,
      known,
      { ...home.devices, compute: left },
      read.details,
      run.checkpoints?.interval,
    );
  const result = await trainSgd(
    {
      data: sorted.data,
      test: test && (await ownBlock(run.validation?.kept, test.block, ctx)),
      start: home.from?.factors,
    },
    stepParams(training),
    {
      checkpoints: run.checkpoints,
      rankUsers: run.rankUsers,
      fetched: found.fetched,
      devices: compute,
      plan: (left) => (left === compute ? plan : planOn(left)),
    },
    ctx,
  );
  return { ...result, ratingDeviation: deviationOf(training, sorted.data) };
}

/** The means of the continued model, at the new positions of its ids; NaN for new ids. */
function earlierMeans(
  { startMeans }: SgdTraining,
  widened: WidenedRatings | undefined,
): DampedMeans | undefined {
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

/**
 * False if the means of the continued model's ratings are not known. Means of only the new ratings would be
 * biased.
 */
function hasMeans({ start, startMeans }: SgdTraining): boolean {
  return start === undefined || startMeans !== undefined;
}

/**
 * Makes a GPU start to compile the kernels of an epoch while ratings are still being sorted. Only for a
 * single GPU, whose schedule names its kernel.
 */
async function compileSteps(
  { kind, tile, lanes, precision }: SgdSchedule,
  { rank, biases, rate }: SgdParams,
  ctx: ExecutionContext,
): Promise<void> {
  const [{ info }] = computeDevices(ctx.executor);
  const shared = { rank, biases, adaptive: rate === 'adagrad' };
  if (!info.ownMemory) return;
  if (kind === 'tile' && tile !== undefined) {
    const { places, lanes: team, threads, arithmetic } = tile;
    const steps = { kernel: 'sgd-tiles', places, lanes: team, threads, arithmetic } as const;
    await announceKernels('compile-sgd', { ...shared, precision: tile.precision, steps }, info.place, ctx);
  }
  if (kind === 'wavefront' && lanes !== undefined && precision !== undefined) {
    const steps = { kernel: 'sgd-waves', lanes } as const;
    await announceKernels('compile-sgd', { ...shared, precision, steps }, info.place, ctx);
  }
}
