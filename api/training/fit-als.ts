import { computingOf, planDevices } from '../../engine/run/devices.ts';
import { sharedArray } from '../../engine/partition.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { runInto } from '../../engine/stream/logical-plan.ts';
import { Ahead } from '../../engine/threads/ahead.ts';
import { together } from '../../engine/threads/together.ts';
import type { EventSink } from '../../engine/events.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import {
  type AlsChoices,
  chooseKernels,
  compileAhead,
  profileOfSorted,
  tuneKernels,
} from '../../operators/als/kernel-choices.ts';
import { freeAhead, freeTimed, placeAhead, placeStart, staysAt } from '../../operators/als/place-ahead.ts';
import type { AlsStart } from '../../operators/als/bind/als-data.ts';
import { drawRows } from '../../operators/als/draw-rows.ts';
import { effectiveRatings } from '../../operators/als/implicit/effective-ratings.ts';
import { learnWeight } from '../../operators/als/implicit/rating-weight.ts';
import { knownForm, type SizedAlsParams, sizedParams } from '../../operators/als/implicit/sized-params.ts';
import { weightedRatings } from '../../operators/als/implicit/weighted-ratings.ts';
import type { AlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import { inUnit, levelInUnit, ratingsInUnit, ratingUnit } from '../../operators/als/rating-unit.ts';
import { alsMatrices, trainAls } from '../../operators/als/train.ts';
import { type Baselines, baselinesOf, type DampedMeans } from '../../operators/evaluation/baselines.ts';
import { HeldOutPairs } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import { sortedMeans, sortedRatingFacts } from '../../operators/evaluation/rating-facts.ts';
import type { ReadPairs } from '../../operators/ratings/ids/known-pairs.ts';
import type { IndexedRatings } from '../../operators/ratings/ids/index-ids.ts';
import type { RatingsProfile } from '../../operators/planner/profile.ts';
import { ProfileRatings } from '../../operators/ratings/profile-ratings.ts';
import { evenRanges } from '../../operators/ratings/row-ranges.ts';
import {
  type SeeSorted,
  sortByUser,
  type SortOptions,
  sortRatings,
} from '../../operators/ratings/sort-ratings.ts';
import { isInBlocks } from '../../operators/als/plan/grid.ts';
import { rowsTaskOf } from '../../operators/als/plan/rows-task.ts';
import { type Ratings, type RatingSides, soleBlock } from '../../operators/ratings/ratings.ts';
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
  plannedAutos,
  plannedDevices,
  requireFits,
  requirePlan,
  requireProblem,
  requireSizes,
} from './plans/given-plan.ts';
import { lookAt, meansFit, type ValidationPairs } from './look-at-ratings.ts';
import {
  budgetOf,
  type ContinuedFit,
  isKept,
  keptAs,
  loadedOnce,
  makeRoom,
  noteBytes,
  ownBlock,
  ownRatings,
} from './kept-ratings.ts';
import type { Model } from '../model.ts';
import { describeInput, type FitOptions, type RatingInput } from '../rating-input.ts';
import { type RatingsHome, ratingsHome, spillGrid } from './plans/ratings-home.ts';
import { rankHeldOut, ranksHeldOut } from './rank-held-out.ts';
import { checkRankUsers } from '../validation/rank-users.ts';
import { trainedModel } from './trained-model.ts';
import { unratedAsOnes } from './unrated-as-ones.ts';
import { AwaitedDevices, trainingDevice } from './training-device.ts';

/** Ratings whose loading leaves garbage of gigabytes. */
const LARGE = 1 << 27;

export interface AlsFit {
  readonly params: AlsParams;
  readonly input: RatingInput;
}

/** Nominal sizes, for looking up kernels before the sizes of the ratings are known. */
const NO_SIZES = { users: 1, items: 1, ratings: 1 } as const;

/** The plan of such a training: reads the ids once, to count users and items. */
export async function planAlsFit(
  { params, input }: AlsFit,
  given: Dataset,
  options: FitOptions,
): Promise<ExplainedPlan> {
  const context = given.session.context(options);
  const ratings = await ratedBy(params, input, await input.found(given, context), context);
  const validation = options.validation && (await input.foundTest(options.validation, context));
  const { executor } = trainingDevice(ratings.session.device, context.executor, params);
  const ctx = { ...context, executor };
  const {
    users,
    items,
    ratings: count,
    userDegrees,
    itemDegrees,
    rating,
  } = await runInto(input.selected(ratings), new ProfileRatings(), ctx);
  const testRatings = validation && (await input.countPairs(validation));
  const largestRating = rating && Math.max(Math.abs(rating.least), Math.abs(rating.most));
  const known: RatingsProfile = {
    users,
    items,
    ratings: count,
    longestUser: userDegrees.most,
    longestItem: itemDegrees.most,
    largestRating,
    testRatings,
    input: describeInput(ratings.plan),
  };
  const choices = await chooseKernels(known, params, ctx);
  const inParts = !isKept(ratings);
  const budget = {
    ...budgetOf(ratings),
    loading: await input.loadingNeed(ratings, count, ctx.signal, { inParts }),
  };
  const { plan } = ratingsHome(
    inParts,
    (grid) =>
      planCheckpoints(planAls(known, params, planDevices(executor), choices, grid), intervalOf(options)),
    count,
    budget,
  );
  return new ExplainedPlan(plan);
}

/** Implicit data may have no ratings: see unratedAsOnes. */
async function ratedBy(
  { implicitPrefs }: AlsParams,
  input: RatingInput,
  dataset: Dataset,
  ctx: ExecutionContext,
): Promise<Dataset> {
  return implicitPrefs
    ? keptAs(await unratedAsOnes(dataset, input.columnsOf(dataset).rating, ctx), dataset)
    : dataset;
}

/** The means of the ratings, which the model keeps, and their errors on the validation set. */
interface Judged {
  readonly means?: DampedMeans;
  readonly baselines?: Baselines | undefined;
}

/** Trains by ALS with holdings of its own. */
export async function fitAls(fit: AlsFit, ratings: Dataset, options: ContinuedFit): Promise<Model> {
  const context = ratings.session.context(options);
  const opened = await AwaitedDevices.of(ratings.session, fit.params, context, options.plan !== undefined);
  const { params, input } = fit;
  // An unknown kernel is refused before the ratings are read.
  if (params.kernel !== undefined) await chooseKernels(NO_SIZES, params, context);
  const train = await ratedBy(params, input, await input.found(ratings, context), context);
  const validation =
    options.validation &&
    (await ratedBy(params, input, await input.foundTest(options.validation, context), context));
  return Holdings.ofRun(
    context,
    (ctx) =>
      withCheckpoints(options, { algorithm: 'als', params: fit.params }, ctx, (checkpoints) =>
        fitHeld(fit, train, { ...options, validation }, { opened, checkpoints }, ctx),
      ),
    ratings.session.tidies,
  );
}

async function fitHeld(
  { params: asked, input }: AlsFit,
  ratings: Dataset,
  options: ContinuedFit,
  {
    opened,
    checkpoints,
  }: { readonly opened: AwaitedDevices; readonly checkpoints: RunCheckpoints | undefined },
  ctx: ExecutionContext,
): Promise<Model> {
  using _ = ctx.metrics.begin('plan');
  const { session } = ratings;
  const started = performance.now();
  const given = options.plan && requirePlan(options.plan);
  if (given) requireProblem(given, { algorithm: 'als', params: asPlanned(asked, given) });
  if (given) plannedDevices(given, planDevices(ctx.executor));
  const form = `als ${input.form(ratings)}`;
  makeRoom(ratings, form);
  // Ratings that are kept from fit to fit stay in one block in memory.
  const inParts = !isKept(ratings);
  const { validation } = options;
  // The test set is read as soon as the first ratings are, while the calling thread has nothing to do. Where
  // memory is bounded, they are read one after the other.
  const begun = Promise.withResolvers<void>();
  await using testRead =
    validation && !session.bounded && !isKept(validation)
      ? new Ahead(ctx.signal, (signal) =>
          begun.promise.then(() => input.readPairs(validation, { ...ctx, signal })),
        )
      : undefined;
  const events: EventSink = (event) => {
    if (event.type === 'phase-progress') begun.resolve();
    ctx.events(event);
  };
  const indexed = await opened
    .during(
      { ...ctx, events },
      (reading) =>
        loadedOnce(ratings, `${form} index`, () =>
          input.index(ratings, options.validation, reading, { inParts }),
        ),
      () => given === undefined && compileAhead(NO_SIZES, asked, ctx),
    )
    .finally(begun.resolve);
  const devices = given ? plannedDevices(given, planDevices(ctx.executor)) : planDevices(ctx.executor);
  const { users, items } = indexed;
  const profile: RatingsProfile = {
    users: keyCount(users),
    items: keyCount(items),
    ratings: indexed.rows,
    input: describeInput(ratings.plan),
  };
  const params = sizedParams(asked, profile);
  const choosing =
    given === undefined
      ? compileAhead(
          { ...profile, longestUser: most(indexed.userCounts), longestItem: most(indexed.itemCounts) },
          params,
          ctx,
        )
      : undefined;
  const home = ratingsHome(
    inParts,
    (grid) => planCheckpoints(planAls(profile, params, devices, undefined, grid), checkpoints?.interval),
    indexed.rows,
    budgetOf(ratings),
  );
  noteBytes(ratings, form, home.plan);
  const [{ ownMemory, place }, ...others] = devices.compute;
  const placesAhead =
    inParts &&
    !params.implicitPrefs &&
    ownMemory &&
    (home.kind === 'memory'
      ? staysAt(home.plan, place, 'whole')
      : home.kind === 'parts' &&
        others.length === 0 &&
        !isInBlocks(home.grid, 'users') &&
        staysAt(home.plan, place, 'in parts'));
  const probable = placesAhead ? await choosing : undefined;
  const sorted: SeeSorted = (block, side, columns, of) =>
    placesAhead &&
    placeAhead(block, probable && rowsTaskOf(home.plan.round, side, columns, probable[side]), of, ctx);
  // Ratings in parts leave host memory when training begins.
  const goesAhead = placesAhead && home.kind === 'memory';
  const sort = async () =>
    loadedOnce(ratings, `${form} blocks`, () =>
      sortRatings(indexed, { duplicates: input.onDuplicates, cut: cutOf(home), sorted }, ctx),
    );
  const readTest = async () =>
    validation &&
    loadedOnce(validation, `${form} ${params.implicitPrefs} pairs`, () =>
      testPairs(validation, input, indexed, ctx, testRead?.result),
    );
  const draws =
    goesAhead && !session.bounded && checkpoints === undefined && options.continued?.start === undefined;
  const draw = async () =>
    draws ? placeStart(await drawnStart(indexed, params, ctx), profile.users, ctx) : undefined;
  // The start goes first: it is on its way to the GPU while ratings are sorted. Where memory is bounded, one
  // thing is done after the other.
  const [drawn, [read, test]] = session.bounded
    ? [undefined, [await sort(), await readTest()] as const]
    : await together(draw, () => together(sort, readTest));
  const heldOut =
    validation && test && ranksHeldOut(params, options)
      ? await loadedOnce(validation, `${form} held out ${params.seed} ${options.rankUsers}`, () =>
          HeldOutPairs.of(
            { users, items, test: test.block, train: read.byUser },
            {
              seed: params.seed,
              rankUsers: checkRankUsers(options),
              itemUsers: read.duplicates === 0 ? indexed.itemCounts : undefined,
            },
            ctx,
          ),
        )
      : undefined;
  const implicit = params.implicitPrefs
    ? await loadedOnce(ratings, `${form} implicit`, () => effectiveRatings(read, ctx))
    : undefined;
  const blocks = implicit?.blocks ?? read;
  if (blocks.byUser.ratings === 0)
    throw new DataError('no rating is above 0, so implicit data prefer nothing', {
      phase: 'load',
      advice: 'Give ratings above 0, or leave implicitPrefs out',
    });
  const { byUser, byItem, duplicates } = blocks;
  input.tellDuplicates(duplicates, ctx);
  const look = () =>
    loadedOnce(ratings, `${form} facts ${params.implicitPrefs}`, () =>
      inPhase(ctx, () => sortedRatingFacts(blocks, ctx)),
    );
  const facts = await look();
  const looked = lookAt(facts, { duplicates, policy: input.onDuplicates, test, implicit }, ctx);
  // An implicit model predicts no ratings.
  const judged = async (): Promise<Judged> => {
    if (params.implicitPrefs) return {};
    const means = await loadedOnce(ratings, `${form} means`, () => sortedMeans(byUser, facts, ctx));
    const { mean, rows, columns } = means;
    const baselines =
      validation &&
      test &&
      (await loadedOnce(validation, `${form} baselines`, () => baselinesOf(test.block, means)));
    return { baselines, ...(meansFit(facts) ? { means: { mean, users: rows, items: columns } } : {}) };
  };
  // A GPU leaves the threads free while it trains.
  const before = goesAhead ? undefined : await inPhase(ctx, judged);
  const resumed =
    checkpoints &&
    (await checkpoints.begin(
      await fingerprintOf({ users, items, ratings: byUser, test: test?.block }, ctx),
      alsMatrices(keyCount(users), keyCount(items), params),
    ));
  const unit = params.implicitPrefs ? 1 : ratingUnit(facts, params.biases);
  if (unit !== 1 && placesAhead) await freeAhead({ byUser, byItem }, ctx, drawn);
  const weight = params.implicitPrefs
    ? await learnWeight(knownForm(params), byUser, indexed.itemCounts, ctx)
    : undefined;
  const scale = async (sorted: Ratings, rows: 'users' | 'items') => {
    const own = await ownRatings(ratings, sorted, ctx);
    if (weight === undefined) return ratingsInUnit(own, unit, ctx);
    return weight.changesNothing
      ? own
      : weightedRatings(
          { ratings: own, rows },
          weight,
          { counts: indexed.itemCounts, keeps: isKept(ratings) },
          ctx,
        );
  };
  const scaled = { byUser: await scale(byUser, 'users'), byItem: await scale(byItem, 'items') };
  const chooses = devices.compute[0].choosesKernels ?? false;
  const known: RatingsProfile = {
    ...profile,
    ...(chooses
      ? profileOfSorted(
          scaled,
          weight?.largest ?? Math.max(Math.abs(facts.least), Math.abs(facts.most)) / unit,
        )
      : {}),
    ratings: byUser.ratings,
    testRatings: test?.block.ratings,
  };
  const asRead: RatingsProfile = {
    ...known,
    ratings: indexed.rows,
    testRatings: test && test.block.ratings + test.coldPairs,
  };
  if (given) requireSizes(given, [known, asRead]);
  if (given) requireProblem(given, { algorithm: 'als', params });
  const kept =
    given === undefined && resumed !== undefined && chooses
      ? await ifFits(() => plannedKernels(resumed, known, params, ctx))
      : undefined;
  const choices = given
    ? chooses
      ? await plannedKernels(given, known, params, ctx)
      : undefined
    : (kept ?? (await choose(scaled, known, params, ctx)));
  const parts =
    home.kind === 'parts'
      ? { grid: home.grid }
      : home.kind === 'spill'
        ? { grid: spillGrid(byUser.parts.length, byItem.parts.length) }
        : {};
  const chosen = home.kind === 'parts' ? { estimate: home.plan.estimate, rejected: home.plan.rejected } : {};
  // Groups are those of all devices: where one is lost, the others have none.
  const paramsOn = ({ length }: typeof devices.compute) =>
    length === devices.compute.length ? params : { ...params, partitionGroups: undefined };
  const planFor = (of: RatingsProfile, compute = devices.compute) => ({
    ...planCheckpoints(
      planAls(of, paramsOn(compute), { ...devices, compute }, choices, parts),
      checkpoints?.interval,
    ),
    ...chosen,
  });
  const plan = planFor(known);
  checkpoints?.planned(plan, resumed);
  if (given) requireFits(given, [plan, planFor(asRead)]);
  await freeTimed(scaled, plan, ctx);
  const replan = (compute: readonly DeviceInfo[]) => planFor(known, compute);
  ctx.events({ type: 'plan', plan });
  // Garbage of loading goes before factors are allocated, where memory is scarce or there is much of it.
  if (home.kind === 'spill' || indexed.rows > LARGE)
    await Promise.all(ctx.executor.devices.map((device) => device.trim()));
  const loaded = performance.now();
  const compute = computingOf(plan, devices, 'update-users');
  const train = async () =>
    trainAls(
      {
        ...scaled,
        users,
        items,
        test: test && validation && inUnit(await ownBlock(validation, test.block, ctx), unit),
      },
      params,
      {
        unit,
        level: levelInUnit(facts, unit),
        checkpoints,
        devices: compute,
        start: options.continued?.start ?? (unit === 1 ? drawn : undefined),
        measuresEnds: options.continued?.measuresEnds,
        rankUsers: checkRankUsers(options),
        fetched: () => heldOut === undefined && session.trained(),
        plan: (left) => (left === compute ? plan : replan(left)),
      },
      ctx,
    );
  const [result, { means, baselines }] =
    before === undefined ? await together(train, judged) : [await train(), before];
  options.continued?.kept?.(result.raw());
  const ranked = heldOut && (await rankHeldOut(heldOut, result, options, ctx));
  if (heldOut) session.trained();
  return trainedModel(
    {
      about: { algorithm: 'als', params },
      session,
      input,
      columns: input.columnsOf(ratings),
      users,
      items,
      itemCounts: new Uint32Array(indexed.itemCounts),
      userCounts: new Uint32Array(indexed.userCounts),
      ratings: byUser.ratings,
      duplicates,
      test: test && { ...test, baselines },
      looked: { ...looked, means },
      result,
      planned: plan,
      resumedFrom: checkpoints?.resumedFrom,
      started,
      loaded,
      ranked,
      tuning: options.continued?.tuning,
      ratingWeight: weight,
    },
    ctx,
  );
}

/**
 * The parameters before the ratings are read, with the plan's α and λ of implicit data where they are `auto`.
 */
function asPlanned({ ...asked }: AlsParams, given: GivenPlan): SizedAlsParams {
  const { alpha = asked.alpha, regParam = asked.regParam } = plannedAutos(given, asked);
  return sizedParams(asked.implicitPrefs ? { ...asked, alpha, regParam } : asked, NO_SIZES);
}

/** The parts of ratings that one block, or memory, does not hold. */
function cutOf(home: RatingsHome): SortOptions['cut'] {
  if (home.kind === 'spill') return { partRatings: home.partRatings };
  if (home.kind === 'memory') return undefined;
  const { users, items } = home.grid;
  return { users: users.q, items: items.q, inBlocks: isInBlocks(home.grid, 'items') };
}

/** The kernels to use, timed first where that pays. */
async function choose(
  sides: RatingSides,
  known: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  using _ = ctx.metrics.begin('tune');
  // Of ratings in parts the rule decides.
  if (soleBlock(sides.byUser) && soleBlock(sides.byItem))
    await tuneKernels(sides, known, params, 'where-it-pays', ctx);
  return chooseKernels(known, params, ctx);
}

/**
 * The kernels that a plan names, with the device's description of them. Throws UsageError for one that it
 * does not have.
 */
async function plannedKernels(
  { choices }: GivenPlan,
  known: RatingsProfile,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsChoices | undefined> {
  const side = async (name: 'users' | 'items') => {
    const { variant, reason } = (choices[name] ?? {}) as Partial<AlsChoices['users']>;
    if (typeof variant !== 'string')
      throw new UsageError(`the plan does not fit: it names no kernel for ${name}`, {
        phase: 'plan',
        advice: 'Make the plan anew',
      });
    const found = await chooseKernels(known, { ...params, kernel: params.kernel ?? variant }, ctx);
    return found && { ...found[name], ...(typeof reason === 'string' ? { reason } : {}) };
  };
  const [users, items] = [await side('users'), await side('items')];
  return users && items && { users, items };
}

async function inPhase<Result>(ctx: ExecutionContext, look: () => Promise<Result>): Promise<Result> {
  using _ = ctx.metrics.begin('look at ratings');
  return await look();
}

/**
 * The start of a training whose ratings are of an ordinary unit, in host memory, drawn while blocks are on
 * the way to the GPU.
 */
async function drawnStart(
  { users, items }: Pick<IndexedRatings, 'users' | 'items'>,
  params: AlsParams,
  ctx: ExecutionContext,
): Promise<AlsStart> {
  const side = (values: Float32Array, rows: number) => ({
    values,
    ...(params.biases ? { bias: sharedArray(Float32Array, rows) } : {}),
  });
  const drawn = await drawRows(users, params, 1, evenRanges(keyCount(users), 128), ctx);
  return {
    users: side(drawn, keyCount(users)),
    items: side(sharedArray(Float32Array, keyCount(items) * params.rank), keyCount(items)),
  };
}

/** The known pairs of a validation set, without their baselines. */
async function testPairs(
  dataset: Dataset,
  input: RatingInput,
  { users, items }: Pick<IndexedRatings, 'users' | 'items'>,
  ctx: ExecutionContext,
  ahead: Promise<ReadPairs> | undefined,
): Promise<ValidationPairs> {
  using _ = ctx.metrics.begin('test set');
  const { indexed, coldPairs } = await input.knownPairs(dataset, users, items, ctx, ahead);
  const byUser = await sortByUser(indexed, 'keep', ctx);
  return { block: byUser, coldPairs };
}

function most(counts: Int32Array): number {
  let largest = 0;
  for (let i = 0; i < counts.length; i++) if (counts[i] > largest) largest = counts[i];
  return largest;
}
