import { type KeyColumn, keyCount, keyText } from '../../engine/keys/key-column.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { computingOf } from '../../engine/run/devices.ts';
import { dataSetName } from '../../engine/partition.ts';
import { constant } from '../../engine/run/scope.ts';
import { requireAttributes, type SideAttributes } from '../attributes/attribute-matrix.ts';
import { heldOutPairs } from '../evaluation/ranking/held-out-ranking.ts';
import { baselinesOf, type SortedFacts, sortedMeans, sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { spareBytes } from '../planner/memory-budget.ts';
import type { AttributeSizes, RatingsProfile } from '../planner/sizes.ts';
import type { IndexedRatings } from '../ratings/ids/number-ids.ts';
import { loadedOnce, ownBlock, ownRatings } from '../ratings/kept-forms.ts';
import { type RatingBlock, type Ratings, type RatingSides, soleBlock } from '../ratings/ratings.ts';
import { sortByUser } from '../ratings/sort-ratings.ts';
import { type EndedTraining, type ValidationPairs, meansFit } from '../training/ended-training.ts';
import {
  devicesOf,
  factsStage,
  finalPlan,
  finishStages,
  type FitRun,
  heldOutStage,
  lookAtRatings,
  type RatingMeans,
  type ReadRatings,
  readStages,
  resumeStage,
  trainStage,
  validationStage,
  warningsStage,
} from '../training/fit.ts';
import { type AlsParams, knownForm, sizedParams } from './als-params.ts';
import { alsMatrices } from './factors.ts';
import { learnWeight, weightedRatings } from './implicit/rating-weight.ts';
import {
  type AlsChoices,
  asPlanned,
  chooseKernels,
  plannedKernels,
  profileOfSorted,
  tuneKernels,
} from './kernel-choices.ts';
import { blockRefs, freePlaced, staysAt } from './place-ratings.ts';
import { type Side, sides } from './plan/problem.ts';
import { type CountedRow, planFit, requireRowFits } from './plan/ratings-home.ts';
import { inUnit, levelInUnit, ratingsInUnit, ratingUnit } from './rating-unit.ts';
import { type AlsStorage, type AlsSorted, type ContinuedAls, placesBlocks, sortStages } from './sort.ts';
import { startOfSpark } from './start.ts';
import { trainAls } from './train.ts';

/** Sorted ratings with their counts and checks. */
interface AlsInspected {
  readonly read: ReadRatings;
  readonly home: AlsStorage;
  readonly sorted: AlsSorted;
  readonly facts: SortedFacts;
  readonly test: ValidationPairs | undefined;
}

/**
 * Trains by ALS, from reading the ratings to the model. Each line is a stage of the scope, which starts when
 * the stages that it names have ended.
 */
export function fitAls<Model>(
  given: AlsParams,
  run: FitRun<Model>,
  continued: ContinuedAls = {},
): Promise<Model> {
  const { scope, ratings } = run;
  const params = ratings.weighing === undefined ? given : { ...given, now: ratings.weighing.iso };
  const form = `als ${params.implicitPrefs} ${ratings.form}`;
  const asked = run.given ? asPlanned(params, run.given) : params;
  const fit = { algorithm: 'als', form, params: asked, updates: false } as const;

  const { begun, opened, ...stages } = readStages(run, fit, (ctx) =>
    readRatings(run, continued.attributes === undefined, ctx),
  );
  const read = scope.stage(
    'attributes',
    { read: stages.read },
    (found, ctx) => withAttributes(found.read, continued.attributes, ctx),
    { need: 'none' },
  );
  const home = scope.stage('plan sizes', { opened, read }, (found, ctx) => {
    const expected = expectedPlan(params, run, found.read, ctx);
    ratings.kept?.noteBytes(form, expected.plan);
    return expected;
  });
  const sorted = sortStages({ params, form, run, continued }, { opened, read, home });
  const none = constant('sorted', undefined);
  const test = validationStage(run, fit, { begun, read, home, sorted: none }, async (known, _, ctx) => ({
    block: await sortByUser(known.indexed, 'keep', ctx),
    coldPairs: known.coldPairs,
  }));
  const heldOut = heldOutStage(run, fit, { read, home, sorted, test }, (data, block, ctx) => {
    const { users, items, itemCounts } = data.read.indexed;
    const { byUser: train, duplicates } = data.sorted.read;
    const itemUsers = duplicates === 0 ? itemCounts : undefined;
    const options = { seed: params.seed, rankUsers: run.rankUsers, itemUsers };
    return heldOutPairs({ users, items, test: block, train }, options, ctx);
  });
  const facts = factsStage(run, fit, sorted, ({ sides }, ctx) => sortedRatingFacts(sides, ctx));
  const data = scope.stage('inspected', { read, home, sorted, facts, test }, (found) => found, {
    need: 'none',
  });
  const warnings = warningsStage(run, fit, data);
  const means = scope.stage('means', { data }, (found, ctx) =>
    lookAtRatings(ctx, () => ratingMeans(params, form, run, found.data, ctx)),
  );

  const resumed = resumeStage(run, data, ({ read: { profile }, home: { params: sized } }) =>
    alsMatrices(profile, sized),
  );
  // The training may overwrite the ratings. So their means are computed before it, unless a GPU trains on
  // ratings in its own memory: then the CPU's threads have time for the means.
  const before = scope.stage(
    'inspected before training',
    { data },
    (found) => (found.data.home.kind === 'memory' && found.data.home.placesBlocks ? undefined : means.result),
    { need: 'none' },
  );
  const ready = scope.stage(
    'ratings to train on',
    { data, resumed },
    (found, ctx) => readyRatings(run, found.data, ctx),
    { after: [heldOut, before] },
  );
  const chosen = scope.stage('plan', { data, ready, resumed, warnings }, (found, ctx) =>
    alsPlan(run, found, ctx),
  );
  const trained = trainStage(run, { data, heldOut, chosen }, (found, ctx) =>
    train(run, continued, found, ctx),
  );
  return finishStages(run, { data, heldOut, warnings, means, chosen, trained }, (found, { ready, plan }) => ({
    about: { algorithm: 'als', params: found.home.params },
    itemCounts: new Uint32Array(found.read.indexed.itemCounts),
    userCounts: new Uint32Array(found.read.indexed.userCounts),
    ratingWeight: ready.weight,
    planned: plan,
  }));
}

/** `inParts`: true if the ratings may exceed one block in memory. */
async function readRatings(
  { ratings }: FitRun<unknown>,
  inParts: boolean,
  ctx: ExecutionContext,
): Promise<ReadRatings> {
  const indexed = await ratings.index(ctx, { inParts: inParts && ratings.kept === undefined });
  const [users, items] = [keyCount(indexed.users), keyCount(indexed.items)];
  return { indexed, profile: { users, items, ratings: indexed.rows, input: ratings.input } };
}

/** Adds the attributes of the numbered users and items. */
async function withAttributes(
  read: ReadRatings,
  of: SideAttributes | undefined,
  ctx: ExecutionContext,
): Promise<ReadRatings> {
  if (of === undefined) return read;
  const blocks: Partial<Record<Side, RatingBlock>> = {};
  const sizes: Partial<Record<Side, AttributeSizes>> = {};
  for (const side of sides) {
    const ids = read.indexed[side];
    const matrix = await of[side]?.(ids, ctx);
    if (matrix === undefined) continue;
    requireAttributes(side, matrix, keyCount(ids));
    const { rows, features, offsets, indices, values } = matrix;
    const ref = { name: dataSetName('attributes'), partition: 0, version: 0 };
    blocks[side] = { ref, rows, ratings: indices.length, offsets, indices, values };
    sizes[side] = { features, entries: indices.length };
  }
  return { ...read, profile: { ...read.profile, attributes: sizes }, attributes: blocks };
}

/**
 * The plan that is expected from the sizes after reading. It decides how ratings are divided into parts for
 * sorting, and where each part is stored. Throws CapacityError.
 */
function expectedPlan(
  given: AlsParams,
  run: FitRun<unknown>,
  { indexed, profile, attributes }: ReadRatings,
  ctx: ExecutionContext,
): AlsStorage {
  const { ratings, budget, checkpoints } = run;
  const devices = devicesOf(run.given, ctx);
  const params = sizedParams(given, profile);
  const mayBeInParts = ratings.kept === undefined && attributes === undefined;
  const setting = { params, devices, budget, mayBeInParts, interval: checkpoints?.interval };
  const home = planFit(setting, profile);
  requireRowFits(home, indexed.rows, fullestRow(indexed), budget);
  const places = mayBeInParts && placesBlocks(home, params, devices);
  return { ...home, setting, params, devices, placesBlocks: places };
}

/** The user or item with the most ratings. */
function fullestRow({ users, items, userCounts, itemCounts }: IndexedRatings): CountedRow {
  const row = (side: 'user' | 'item', ids: KeyColumn, counts: Int32Array): CountedRow => {
    const fullest = counts.reduce((best, count, at) => (count > counts[best] ? at : best), 0);
    return { name: `${side} ${keyText(ids, fullest)}`, ratings: counts[fullest] };
  };
  const [user, item] = [row('user', users, userCounts), row('item', items, itemCounts)];
  return user.ratings > item.ratings ? user : item;
}

/** Means of explicit ratings; a model of implicit data does not predict ratings. */
async function ratingMeans(
  { implicitPrefs }: AlsParams,
  form: string,
  { ratings, validation }: FitRun<unknown>,
  { sorted, facts, test }: AlsInspected,
  ctx: ExecutionContext,
): Promise<RatingMeans> {
  if (implicitPrefs) return {};
  const found = await loadedOnce(ratings.kept, `${form} means`, () => sortedMeans(sorted.byRow, facts, ctx));
  const { mean, rows, columns } = found;
  const baselines =
    test && (await loadedOnce(validation?.kept, `${form} baselines`, () => baselinesOf(test.block, found)));
  return { baselines, ...(meansFit(facts) && { means: { mean, users: rows, items: columns } }) };
}

/** The ratings to train on: divided by their unit, or weights for implicit data, and their sizes. */
async function readyRatings(
  { ratings, scope }: FitRun<unknown>,
  { read, home, sorted, facts, test }: AlsInspected,
  ctx: ExecutionContext,
) {
  const { indexed, profile } = read;
  const { params } = home;
  const { byUser, byItem } = sorted.sides;
  const unit = params.implicitPrefs ? 1 : ratingUnit(facts, params.biases);
  // Blocks were sent to the device and initial factors drawn early, on the guess that ratings are not scaled
  // (unit 1); discards them if they are.
  if (unit !== 1) await scope.discard([...sorted.placed, sorted.drawn]);
  const biggest = Math.max(Math.abs(facts.least), Math.abs(facts.most));
  const weight = !params.implicitPrefs
    ? undefined
    : ratings.weighing
      ? { ...ratings.weighing.weight, largest: biggest, changesNothing: true }
      : await learnWeight(knownForm(params), byUser, indexed.itemCounts, ctx);
  const scale = async (one: Ratings, rows: 'users' | 'items') => {
    const own = await ownRatings(ratings.kept, one, ctx);
    if (weight === undefined) return ratingsInUnit(own, unit, ctx);
    if (weight.changesNothing) return own;
    const options = { counts: indexed.itemCounts, keeps: ratings.kept !== undefined };
    return weightedRatings({ ratings: own, rows }, weight, options, ctx);
  };
  const sides = { byUser: await scale(byUser, 'users'), byItem: await scale(byItem, 'items') };
  const largest = biggest / unit;
  const known: RatingsProfile = {
    ...profile,
    ...(choosesKernels(home) && profileOfSorted(sides, weight?.largest ?? largest)),
    ratings: byUser.ratings,
    testRatings: test?.block.ratings,
  };
  return { sides, unit, weight, known };
}

/** True if the computing device has kernel variants. */
function choosesKernels({ devices }: AlsStorage): boolean {
  return devices.compute[0].choosesKernels ?? false;
}

type AlsReady = Awaited<ReturnType<typeof readyRatings>>;
type AlsPlanned = Awaited<ReturnType<typeof alsPlan>>;

/** The final plan, for kernels that a given plan names, or that the device chooses. */
async function alsPlan(
  run: FitRun<unknown>,
  found: {
    readonly data: AlsInspected;
    readonly ready: AlsReady;
    readonly resumed: Parameters<typeof finalPlan>[4];
  },
  ctx: ExecutionContext,
) {
  const { data, ready, resumed } = found;
  const { home } = data;
  const { params } = home;
  const { known, sides } = ready;
  const made = await finalPlan(run, { algorithm: 'als', params }, data, known, resumed, {
    planned: async (plan) => (choosesKernels(home) ? plannedKernels(plan, known, params, ctx) : undefined),
    choose: async () => {
      using _ = ctx.metrics.begin('tune');
      // Kernels are only timed on ratings in a single block; for ratings in parts a rule chooses them.
      if (inOneBlock(sides)) await tuneKernels(sides, known, params, 'where-it-pays', ctx);
      return chooseKernels(known, params, ctx);
    },
    planOf: (profile, choice) => refinedPlan(data, profile, choice),
  });
  // Blocks were sent to the device when they were sorted. Frees them there if the final plan has them in
  // parts, or not for the whole run.
  const [{ place }] = home.devices.compute;
  if (choosesKernels(home) && inOneBlock(sides) && !staysAt(made.plan, place, 'whole')) {
    await run.scope.discard(data.sorted.placed);
    await freePlaced(blockRefs(sides), ctx);
  }
  ctx.events({ type: 'plan', plan: made.plan });
  return { ...made, ready };
}

function inOneBlock({ byUser, byItem }: RatingSides): boolean {
  return soleBlock(byUser) !== undefined && soleBlock(byItem) !== undefined;
}

/** The expected plan for the ratings as they were sorted. `compute`: the devices that are left. */
function refinedPlan(
  { home, sorted: { sides } }: AlsInspected,
  known: RatingsProfile,
  choice: AlsChoices | undefined,
  compute?: readonly DeviceInfo[],
) {
  const parts = { users: sides.byUser.parts.length, items: sides.byItem.parts.length };
  return planFit(home.setting, known, choice, { home, parts, ...(compute && { compute }) }).plan;
}

async function train(
  run: FitRun<unknown>,
  continued: ContinuedAls,
  found: { readonly data: AlsInspected; readonly chosen: AlsPlanned; readonly fetched: () => void },
  ctx: ExecutionContext,
): Promise<EndedTraining['result']> {
  const { read, home, sorted, facts, test } = found.data;
  const { choice, plan, ready } = found.chosen;
  const { users, items } = read.indexed;
  const { unit, sides, known } = ready;
  const drawn = unit === 1 ? sorted.drawn.result : undefined;
  const { sparkStart } = continued;
  const ofSpark =
    sparkStart &&
    startOfSpark(sparkStart, read.indexed, home.params, { unit, room: spareBytes(plan, run.budget) });
  const compute = computingOf(plan, home.devices, 'update-users');
  const result = await trainAls(
    {
      ...sides,
      users,
      items,
      attributes: read.attributes,
      test: test && inUnit(await ownBlock(run.validation?.kept, test.block, ctx), unit),
    },
    home.params,
    {
      unit,
      level: levelInUnit(facts, unit),
      checkpoints: run.checkpoints,
      devices: compute,
      start: continued.start ?? ofSpark ?? (await drawn),
      measuresEnds: continued.measuresEnds,
      rankUsers: run.rankUsers,
      fetched: found.fetched,
      plan: (left) => (left === compute ? plan : refinedPlan(found.data, known, choice, left)),
    },
    ctx,
  );
  continued.kept?.(result.raw());
  return result;
}
