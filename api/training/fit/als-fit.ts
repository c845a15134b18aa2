import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { computingOf } from '../../../engine/run/devices.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import { keyCount, keyText } from '../../../engine/keys/key-column.ts';
import type { AlsChoices } from '../../../operators/als/kernel-choices.ts';
import { sizedParams } from '../../../operators/als/implicit/sized-params.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import type { AlsStart } from '../../../operators/als/bind/als-data.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { blockRefs, freePlaced, staysAt } from '../../../operators/als/place-ratings.ts';
import { inUnit, levelInUnit } from '../../../operators/als/rating-unit.ts';
import { alsMatrices } from '../../../operators/als/factor-matrices.ts';
import { trainAls } from '../../../operators/als/train.ts';
import { baselinesOf } from '../../../operators/evaluation/baselines.ts';
import { HeldOutPairs } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import {
  sortedMeans,
  sortedRatingFacts,
  type SortedFacts,
} from '../../../operators/evaluation/rating-facts.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import type { IndexedRatings } from '../../../operators/ratings/ids/index-ids.ts';
import type { KnownPairs } from '../../../operators/ratings/ids/known-pairs.ts';
import { soleBlock } from '../../../operators/ratings/ratings.ts';
import { sortByUser } from '../../../operators/ratings/sort-ratings.ts';
import { planCheckpoints } from '../../../operators/training/planned-checkpoints.ts';
import { describeInput } from '../../rating-input.ts';
import { checkRankUsers } from '../../validation/rank-users.ts';
import { budgetOf, isKept, loadedOnce, ownBlock } from '../kept-ratings.ts';
import { meansFit, type ValidationPairs } from '../rating-findings.ts';
import { type GivenPlan, requireProblem } from '../plans/given-plan.ts';
import { spareBytes } from '../plans/memory-budget.ts';
import { type CountedRow, ratingsHome, requireRowFits, spillGrid } from '../plans/ratings-home.ts';
import type {
  ChosenPlan,
  FitAlgorithm,
  InspectedData,
  Judged,
  ModelFacts,
  ReadData,
  ReadRatings,
  ReadStages,
  SortedPairs,
} from './algorithm.ts';
import { asPlanned, chooseAlsKernels, plannedKernels } from './als-kernels.ts';
import { readyRatings } from './als-ready.ts';
import { placesBlocks, sortStages } from './als-sort.ts';
import { startOfSpark } from './als-start.ts';
import { devicesOf, type FitRun } from './fit-run.ts';
import type { EndedTraining } from '../ended-training.ts';
import type { AlsReady, AlsHome, AlsSorted, AlsTypes } from './als-types.ts';

/** ALS as the algorithm of a fit. */
export class AlsFit implements FitAlgorithm<AlsTypes> {
  readonly params: AlsParams;
  readonly form: string;
  readonly updates = false;
  readonly testsAfterSort = false;
  readonly #run: FitRun;

  constructor(params: AlsParams, run: FitRun) {
    this.params = params;
    this.#run = run;
    this.form = `als ${params.implicitPrefs} ${run.input.form(run.ratings)}`;
  }

  requireProblem(given: GivenPlan, data?: InspectedData<AlsTypes>): void {
    const params = data ? data.home.params : asPlanned(this.params, given);
    requireProblem(given, { algorithm: 'als', params });
  }

  async index(ctx: ExecutionContext): Promise<ReadRatings> {
    const { input, ratings, validation } = this.#run;
    const indexed = await input.index(ratings, validation, ctx, { inParts: !isKept(ratings) });
    const profile: RatingsProfile = {
      users: keyCount(indexed.users),
      items: keyCount(indexed.items),
      ratings: indexed.rows,
      input: describeInput(ratings.plan),
    };
    return { indexed, profile };
  }

  home({ indexed, profile }: ReadRatings, ctx: ExecutionContext): AlsHome {
    const { ratings, given, checkpoints } = this.#run;
    const devices = devicesOf(given, ctx);
    const params = sizedParams(this.params, profile);
    // Ratings that are cached between fits must stay in one block in memory.
    const inParts = !isKept(ratings);
    const home = ratingsHome(
      inParts,
      (grid) => planCheckpoints(planAls(profile, params, devices, undefined, grid), checkpoints?.interval),
      indexed.rows,
      budgetOf(ratings),
    );
    requireRowFits(home, indexed.rows, fullestRow(indexed), budgetOf(ratings));
    return { ...home, params, devices, placesBlocks: inParts && placesBlocks(home, params, devices) };
  }

  sort(stages: ReadStages<AlsTypes>): ScopeStage<AlsSorted> {
    return sortStages({ params: this.params, form: this.form, run: this.#run }, stages);
  }

  async test(_: ReadData<AlsTypes>, { indexed, coldPairs }: KnownPairs, ctx: ExecutionContext) {
    return { block: await sortByUser(indexed, 'keep', ctx), coldPairs };
  }

  heldOut(
    { read: { indexed }, sorted }: SortedPairs<AlsTypes>,
    { block }: ValidationPairs,
    ctx: ExecutionContext,
  ): Promise<HeldOutPairs | undefined> {
    const { users, items, itemCounts } = indexed;
    return HeldOutPairs.of(
      { users, items, test: block, train: sorted.read.byUser },
      {
        seed: this.params.seed,
        rankUsers: checkRankUsers(this.#run.options),
        itemUsers: sorted.read.duplicates === 0 ? itemCounts : undefined,
      },
      ctx,
    );
  }

  facts({ sides }: AlsSorted, ctx: ExecutionContext): Promise<SortedFacts> {
    return sortedRatingFacts(sides, ctx);
  }

  /**
   * Means are computed only for explicit ratings, since a model of implicit data does not predict ratings.
   */
  async judge({ sorted, facts, test }: InspectedData<AlsTypes>, ctx: ExecutionContext): Promise<Judged> {
    if (this.params.implicitPrefs) return {};
    const { ratings, validation } = this.#run;
    const found = await loadedOnce(ratings, `${this.form} means`, () =>
      sortedMeans(sorted.byRow, facts, ctx),
    );
    const { mean, rows, columns } = found;
    const baselines =
      validation &&
      test &&
      (await loadedOnce(validation, `${this.form} baselines`, () => baselinesOf(test.block, found)));
    return { baselines, ...(meansFit(facts) && { means: { mean, users: rows, items: columns } }) };
  }

  matrices({
    read: { indexed },
    home: { params },
  }: InspectedData<AlsTypes>): Readonly<Record<string, number>> {
    return alsMatrices(keyCount(indexed.users), keyCount(indexed.items), params);
  }

  ready(data: InspectedData<AlsTypes>, ctx: ExecutionContext): Promise<AlsReady> {
    return readyRatings(this.#run, data, ctx);
  }

  plannedChoice(
    plan: GivenPlan,
    { home }: InspectedData<AlsTypes>,
    [known]: readonly [RatingsProfile, RatingsProfile],
    ctx: ExecutionContext,
  ): Promise<AlsChoices | undefined> {
    return choosesKernels(home) ? plannedKernels(plan, known, home.params, ctx) : Promise.resolve(undefined);
  }

  choose(
    { home: { params } }: InspectedData<AlsTypes>,
    { sides, known }: AlsReady,
    ctx: ExecutionContext,
  ): Promise<AlsChoices | undefined> {
    return chooseAlsKernels(sides, known, params, ctx);
  }

  planFor(
    profile: RatingsProfile,
    { home, sorted }: InspectedData<AlsTypes>,
    choice: AlsChoices | undefined,
    compute: readonly DeviceInfo[] = home.devices.compute,
  ) {
    const { byUser, byItem } = sorted.sides;
    const inParts = home.kind === 'parts' || home.kind === 'files';
    const parts = inParts
      ? { grid: home.grid }
      : home.kind === 'spill'
        ? { grid: spillGrid(byUser.parts.length, byItem.parts.length) }
        : home.search;
    // Groups name all devices, so after a device was lost the plan has no groups.
    const params =
      compute.length === home.devices.compute.length
        ? home.params
        : { ...home.params, partitionGroups: undefined };
    const plan = planAls(profile, params, { ...home.devices, compute }, choice, parts);
    return {
      ...planCheckpoints(plan, this.#run.checkpoints?.interval),
      ...(inParts && { estimate: home.plan.estimate, rejected: home.plan.rejected }),
    };
  }

  /**
   * Blocks were sent to the device when they were sorted. Frees them there if the final plan has them in
   * parts, or not for the whole run.
   */
  async planned(
    { home, sorted }: InspectedData<AlsTypes>,
    { plan, ready }: ChosenPlan<AlsTypes>,
    ctx: ExecutionContext,
  ): Promise<void> {
    const [{ place }] = home.devices.compute;
    const { byUser, byItem } = ready.sides;
    const inBlocks = soleBlock(byUser) !== undefined && soleBlock(byItem) !== undefined;
    if (!choosesKernels(home) || !inBlocks || staysAt(plan, place, 'whole')) return;
    await this.#run.scope.discard(sorted.placed);
    await freePlaced(blockRefs(ready.sides), ctx);
  }

  /** If a GPU trains on ratings in its own memory, the CPU's threads have time to compute means. */
  judgesWhileTraining({ kind, placesBlocks: places }: AlsHome): boolean {
    return kind === 'memory' && places;
  }

  async train(
    data: InspectedData<AlsTypes>,
    { ready, choice, plan }: ChosenPlan<AlsTypes>,
    { fetched }: { readonly fetched: () => void },
    ctx: ExecutionContext,
  ): Promise<EndedTraining['result']> {
    const { read, home, sorted, facts, test } = data;
    const { validation, options, checkpoints } = this.#run;
    const { continued } = options;
    const { unit, sides, known } = ready;
    const drawn = unit === 1 ? sorted.drawn.result : undefined;
    const compute = computingOf(plan, home.devices, 'update-users');
    const result = await trainAls(
      {
        ...sides,
        users: read.indexed.users,
        items: read.indexed.items,
        test: test && validation && inUnit(await ownBlock(validation, test.block, ctx), unit),
      },
      home.params,
      {
        unit,
        level: levelInUnit(facts, unit),
        checkpoints,
        devices: compute,
        start: continued?.start ?? this.#startOfSpark(data, plan, unit) ?? (await drawn),
        measuresEnds: continued?.measuresEnds,
        rankUsers: checkRankUsers(options),
        fetched,
        plan: (left) => (left === compute ? plan : this.planFor(known, data, choice, left)),
      },
      ctx,
    );
    continued?.kept?.(result.raw());
    return result;
  }

  #startOfSpark(
    { read: { indexed }, home: { params } }: InspectedData<AlsTypes>,
    plan: PhysicalPlan,
    unit: number,
  ): AlsStart | undefined {
    const { ratings, options } = this.#run;
    const { sparkStart } = options.continued ?? {};
    if (sparkStart === undefined) return undefined;
    return startOfSpark(sparkStart, indexed, params, { unit, room: spareBytes(plan, ratings.session) });
  }

  model(
    { read: { indexed }, home: { params } }: InspectedData<AlsTypes>,
    { ready, plan }: ChosenPlan<AlsTypes>,
  ): ModelFacts {
    return {
      about: { algorithm: 'als', params },
      columns: this.#run.input.columnsOf(this.#run.ratings),
      itemCounts: new Uint32Array(indexed.itemCounts),
      userCounts: new Uint32Array(indexed.userCounts),
      ratingWeight: ready.weight,
      planned: plan,
    };
  }
}

/** True if the computing device has kernel variants. */
function choosesKernels({ devices }: AlsHome): boolean {
  return devices.compute[0].choosesKernels ?? false;
}

/** The user or item with the most ratings. */
function fullestRow({ users, items, userCounts, itemCounts }: IndexedRatings): CountedRow {
  const [user, item] = [userCounts, itemCounts].map((counts) =>
    counts.reduce((best, count, at) => (count > counts[best] ? at : best), 0),
  );
  return userCounts[user] > itemCounts[item]
    ? { name: `user ${keyText(users, user)}`, ratings: userCounts[user] }
    : { name: `item ${keyText(items, item)}`, ratings: itemCounts[item] };
}
