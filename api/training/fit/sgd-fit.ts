import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { computingOf, type PlanDevices } from '../../../engine/run/devices.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import { type Baselines, baselinesOf } from '../../../operators/evaluation/baselines.ts';
import { HeldOutPairs } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import type { RatingShape } from '../../../operators/evaluation/rating-facts.ts';
import { loadingStages } from '../../../operators/planner/load-stages.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import type { KnownPairs } from '../../../operators/ratings/ids/known-pairs.ts';
import type { RatingBlock } from '../../../operators/ratings/rating-block.ts';
import { ratingsOf } from '../../../operators/ratings/ratings.ts';
import { pairsByPosition } from '../../../operators/sgd/data/by-position.ts';
import { type Continuation, continueFrom } from '../../../operators/sgd/data/continue.ts';
import {
  type LoadedSgdData,
  loadSgdData,
  loadSgdTest,
  meansByPosition,
} from '../../../operators/sgd/data/data.ts';
import { solveNewRows } from '../../../operators/sgd/data/solve-new-rows.ts';
import { compileSteps } from '../../../operators/sgd/compile-steps.ts';
import type { SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd, scheduleOf } from '../../../operators/sgd/plan.ts';
import { sgdMatrices } from '../../../operators/sgd/matrices.ts';
import { convergenceReport } from '../../../operators/sgd/schedules/convergence.ts';
import type { SgdSchedule } from '../../../operators/sgd/schedules/schedule.ts';
import { trainSgd } from '../../../operators/sgd/train.ts';
import { planCheckpoints } from '../../../operators/training/planned-checkpoints.ts';
import { checkRankUsers } from '../../validation/rank-users.ts';
import { budgetOf, loadedOnce, ownBlock, ownRatings } from '../kept-ratings.ts';
import { meansFit, type ValidationPairs } from '../rating-findings.ts';
import { type GivenPlan, requireProblem } from '../plans/given-plan.ts';
import { requireBudget } from '../plans/memory-budget.ts';
import type {
  ChosenPlan,
  ExpectedPlan,
  FitAlgorithm,
  FitTypes,
  InspectedData,
  Judged,
  ModelFacts,
  ReadData,
  ReadStages,
  ReadyData,
  SortedData,
  SortedPairs,
} from './algorithm.ts';
import { devicesOf, type FitRun } from './fit-run.ts';
import { plannedSchedule } from './sgd-schedule.ts';
import {
  countsWith,
  earlierMeans,
  hasMeans,
  indexFit,
  type SgdRead,
  type SgdTraining,
  stepParams,
} from './sgd-read.ts';
import type { EndedTraining } from '../ended-training.ts';

interface SgdHome extends ExpectedPlan {
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

interface SgdTypes extends FitTypes {
  readonly read: SgdRead;
  readonly home: SgdHome;
  readonly sorted: SgdSorted;
  readonly facts: RatingShape;
  readonly ready: ReadyData;
  readonly choice: SgdSchedule | undefined;
}

/** SGD as the algorithm of a fit. */
export class SgdFit implements FitAlgorithm<SgdTypes> {
  readonly params: SgdParams;
  readonly form: string;
  readonly updates: boolean;
  readonly testsAfterSort = true;
  readonly #fit: SgdTraining;
  readonly #run: FitRun;

  constructor(fit: SgdTraining, run: FitRun) {
    const { seed, biases } = fit.params;
    this.params = fit.params;
    this.form = `sgd ${seed} ${biases} ${run.input.form(run.ratings)}`;
    this.updates = fit.start !== undefined;
    [this.#fit, this.#run] = [fit, run];
  }

  requireProblem(given: GivenPlan): void {
    requireProblem(given, { algorithm: 'sgd', params: this.params });
  }

  index(ctx: ExecutionContext): Promise<SgdRead> {
    const { ratings, validation } = this.#run;
    return indexFit(this.#fit, ratings, validation, ctx);
  }

  home({ profile, details, widened }: SgdRead, ctx: ExecutionContext): SgdHome {
    const { ratings, given, checkpoints } = this.#run;
    const { start } = this.#fit;
    const devices = devicesOf(given, ctx);
    const plan = planCheckpoints(planSgd(profile, this.params, devices, details), checkpoints?.interval);
    requireBudget(plan, budgetOf(ratings));
    const schedule = scheduleOf(plan);
    const from = start && widened && continueFrom(start, widened, this.params);
    return { plan, devices, bands: schedule.inBands ? schedule : undefined, from };
  }

  sort({ read, home }: ReadStages<SgdTypes>): ScopeStage<SgdSorted> {
    this.#run.scope.speculate(
      'compile kernels',
      { home },
      ({ home: { plan } }, ctx) => compileSteps(scheduleOf(plan), this.params, ctx),
      { need: 'none' },
    );
    return this.#run.scope.stage(loadingStages.sort, { read, home }, (data, ctx) => this.#sorted(data, ctx));
  }

  async #sorted(
    { read: { indexed, widened }, home: { from, bands } }: ReadData<SgdTypes>,
    ctx: ExecutionContext,
  ): Promise<SgdSorted> {
    const { ratings, input } = this.#run;
    const loaded = await loadedOnce(ratings, `${this.form} data`, () =>
      loadSgdData(
        indexed,
        {
          duplicates: input.onDuplicates,
          seed: this.params.seed,
          biases: this.params.biases,
          mean: from?.mean,
          leastDeviation: from?.leastDeviation,
          means: earlierMeans(this.#fit, widened),
          bands: bands?.rowBands,
        },
        ctx,
      ),
    );
    const data = { ...loaded, ratings: await ownRatings(ratings, loaded.ratings, ctx) };
    if (from) await solveNewRows(from, data, { params: this.params, deviation: this.#deviation(data) }, ctx);
    return { data, byRow: data.ratings, duplicates: data.duplicates };
  }

  #deviation({ scale }: LoadedSgdData): number {
    return this.#fit.startDeviation ?? scale.deviation;
  }

  async test(
    { sorted }: { readonly sorted?: SgdSorted },
    { indexed, coldPairs }: KnownPairs,
    ctx: ExecutionContext,
  ): Promise<ValidationPairs> {
    const { data } = sorted as SgdSorted;
    let baselines: Baselines | undefined;
    const look = async (raw: RatingBlock) =>
      void (baselines = hasMeans(this.#fit) ? await baselinesOf(raw, data.facts.means) : undefined);
    const block = await loadSgdTest(indexed, data, ctx, look);
    return { block, coldPairs, ...(baselines && { baselines }) };
  }

  async heldOut(
    { sorted: { data } }: SortedPairs<SgdTypes>,
    { block }: ValidationPairs,
    ctx: ExecutionContext,
  ): Promise<HeldOutPairs | undefined> {
    const pairs = await pairsByPosition(data, block, ctx);
    return HeldOutPairs.of(
      { ...pairs, train: ratingsOf(pairs.train) },
      { seed: this.params.seed, rankUsers: checkRankUsers(this.#run.options) },
      ctx,
    );
  }

  async facts({ data }: SgdSorted): Promise<RatingShape> {
    return data.facts;
  }

  async judge({ sorted: { data }, facts, test }: InspectedData<SgdTypes>): Promise<Judged> {
    const means = hasMeans(this.#fit) && meansFit(facts) ? meansByPosition(data) : undefined;
    return { means, baselines: test?.baselines };
  }

  matrices({ sorted: { data } }: InspectedData<SgdTypes>): Readonly<Record<string, number>> {
    return sgdMatrices(data, stepParams(this.#fit));
  }

  async ready({ read, sorted, test }: InspectedData<SgdTypes>): Promise<ReadyData> {
    return {
      known: { ...read.profile, ratings: sorted.byRow.ratings, testRatings: test?.block.ratings },
    };
  }

  async plannedChoice(
    plan: GivenPlan,
    { home }: InspectedData<SgdTypes>,
    profiles: readonly [RatingsProfile, RatingsProfile],
  ): Promise<SgdSchedule> {
    return plannedSchedule(plan, profiles, this.params, home.devices);
  }

  /** If ratings were sorted into the bands of a schedule, that schedule is used. */
  async choose({ home }: InspectedData<SgdTypes>): Promise<SgdSchedule | undefined> {
    return home.bands;
  }

  planFor(
    profile: RatingsProfile,
    { read, home }: InspectedData<SgdTypes>,
    schedule: SgdSchedule | undefined,
    compute?: readonly DeviceInfo[],
  ): PhysicalPlan {
    const devices = compute ? { ...home.devices, compute } : home.devices;
    // The schedule depends on the devices, so the plan for other devices makes its own.
    const details = schedule && !compute ? { ...read.details, schedule } : read.details;
    const plan = planSgd(profile, stepParams(this.#fit), devices, details);
    return planCheckpoints(plan, this.#run.checkpoints?.interval);
  }

  async planned(
    { read: { indexed } }: InspectedData<SgdTypes>,
    { plan, ready: { known } }: ChosenPlan<SgdTypes>,
    { events }: ExecutionContext,
  ): Promise<void> {
    const { itemCounts, userCounts } = indexed;
    const schedule = scheduleOf(plan);
    const convergence = convergenceReport({ ...known, itemCounts, userCounts }, schedule);
    events({ type: 'note', text: `schedule ${schedule.kind}: ${convergence.text}` });
    if (convergence.warning !== undefined) events({ type: 'warning', text: convergence.warning });
  }

  judgesWhileTraining(): boolean {
    return false;
  }

  async train(
    data: InspectedData<SgdTypes>,
    { ready, choice, plan }: ChosenPlan<SgdTypes>,
    { fetched }: { readonly fetched: () => void },
    ctx: ExecutionContext,
  ): Promise<EndedTraining['result']> {
    const { home, sorted, test } = data;
    const { validation, options, checkpoints } = this.#run;
    const compute = computingOf(plan, home.devices, 'sgd-epoch');
    const result = await trainSgd(
      {
        data: sorted.data,
        test: test && validation && (await ownBlock(validation, test.block, ctx)),
        start: home.from?.factors,
      },
      stepParams(this.#fit),
      {
        checkpoints,
        rankUsers: checkRankUsers(options),
        fetched,
        devices: compute,
        plan: (left) => (left === compute ? plan : this.planFor(ready.known, data, choice, left)),
      },
      ctx,
    );
    return { ...result, ratingDeviation: this.#deviation(sorted.data) };
  }

  model({ read: { indexed, widened } }: InspectedData<SgdTypes>, { plan }: ChosenPlan<SgdTypes>): ModelFacts {
    const { input, ratings } = this.#run;
    const { itemCounts, userCounts } = indexed;
    return {
      about: { algorithm: 'sgd', params: this.params },
      columns: this.updates ? input.columns : input.columnsOf(ratings),
      itemCounts: countsWith(this.#fit, itemCounts, widened?.items),
      userCounts: this.updates ? undefined : new Uint32Array(userCounts),
      planned: this.updates ? { ...plan, choices: { ...plan.choices, start: 'a model' } } : plan,
    };
  }
}
