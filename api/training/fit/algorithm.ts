import type { DeviceInfo } from '../../../engine/plan/device-info.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { ScopeStage } from '../../../engine/run/scope.ts';
import type { EffectiveRatings } from '../../../operators/als/implicit/effective-ratings.ts';
import type { Baselines, DampedMeans } from '../../../operators/evaluation/baselines.ts';
import type { HeldOutPairs } from '../../../operators/evaluation/ranking/held-out-ranking.ts';
import type { RatingShape } from '../../../operators/evaluation/rating-facts.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import type { IndexedRatings } from '../../../operators/ratings/ids/index-ids.ts';
import type { KnownPairs } from '../../../operators/ratings/ids/known-pairs.ts';
import type { Ratings } from '../../../operators/ratings/ratings.ts';
import type { ValidationPairs } from '../rating-findings.ts';
import type { GivenPlan } from '../plans/given-plan.ts';
import type { DeviceParams } from '../training-device.ts';
import type { EndedTraining } from '../ended-training.ts';

/** Ratings that have been read, with their ids numbered. */
export interface ReadRatings {
  readonly indexed: IndexedRatings;
  readonly profile: RatingsProfile;
}

/**
 * The plan that is expected from the sizes after reading; the final plan is made after sorting. It decides
 * how ratings are divided into parts for sorting, and where each part is stored.
 */
export interface ExpectedPlan {
  readonly plan: PhysicalPlan;
}

/** Sorted ratings. */
export interface SortedData {
  /** Ratings by row with their original values, from which the fingerprint of a checkpoint is computed. */
  readonly byRow: Ratings;
  /** Ratings whose pair occurred earlier in the input. */
  readonly duplicates: number;
  readonly implicit?: EffectiveRatings | undefined;
}

/** Ratings in the form in which the algorithm trains on them. */
export interface ReadyData {
  /** The sizes for the final plan. */
  readonly known: RatingsProfile;
}

/** The means of the ratings, which the model stores, and their errors on the validation set. */
export interface Judged {
  readonly means?: DampedMeans | undefined;
  readonly baselines?: Baselines | undefined;
}

/** The data that one phase of a fit passes to the next. Each algorithm has its own types. */
export interface FitTypes {
  readonly read: ReadRatings;
  readonly home: ExpectedPlan;
  readonly sorted: SortedData;
  readonly facts: RatingShape;
  readonly ready: ReadyData;
  /** The choice on which the final plan depends: kernels for ALS, the schedule of steps for SGD. */
  readonly choice: unknown;
}

/** The results of the reading phase. */
export type ReadData<Types extends FitTypes> = Pick<Types, 'read' | 'home'>;

/** Ratings with the known pairs of the validation set. */
export interface SortedPairs<Types extends FitTypes> extends ReadData<Types> {
  readonly sorted: Types['sorted'];
  readonly test: ValidationPairs | undefined;
}

/** The data after the inspecting phase: sorted ratings, known validation pairs, and facts about them. */
export interface InspectedData<Types extends FitTypes> extends SortedPairs<Types> {
  readonly facts: Types['facts'];
}

/** The stages of the reading phase. */
export interface ReadStages<Types extends FitTypes> {
  readonly opened: ScopeStage<void>;
  readonly read: ScopeStage<Types['read']>;
  readonly home: ScopeStage<Types['home']>;
}

/** The final plan and its inputs. */
export interface ChosenPlan<Types extends FitTypes> {
  readonly ready: Types['ready'];
  readonly choice: Types['choice'];
  readonly plan: PhysicalPlan;
}

/** The facts of the model that depend on the algorithm. */
export type ModelFacts = Pick<
  EndedTraining,
  'about' | 'columns' | 'itemCounts' | 'userCounts' | 'ratingWeight' | 'planned'
>;

/**
 * The parts of a fit that differ between ALS and SGD: parameters, data sets, stages and the result. The
 * phases of a fit call these functions in this order; see fit.ts. An object is used for one fit.
 */
export interface FitAlgorithm<Types extends FitTypes> {
  readonly params: DeviceParams & { readonly seed: number; readonly rank: number };
  /**
   * Name of the form in which the algorithm loads ratings. A data set that is cached between fits loads each
   * form once.
   */
  readonly form: string;
  /** True if a model is updated by new ratings, which may be few and need no warnings. */
  readonly updates: boolean;
  /** True if `test` must wait for the sorted ratings. */
  readonly testsAfterSort: boolean;

  /** Reads the ratings and numbers their ids. */
  index(ctx: ExecutionContext): Promise<Types['read']>;
  /** Decides where ratings are stored. Throws CapacityError if the plan does not fit. */
  home(read: Types['read'], ctx: ExecutionContext): Types['home'];

  /** Adds the stage that sorts the ratings, and stages that can run before it or at the same time. */
  sort(stages: ReadStages<Types>): ScopeStage<Types['sorted']>;
  /** The validation pairs whose user and item are known, in the same form as the training ratings. */
  test(
    data: ReadData<Types> & { readonly sorted?: Types['sorted'] },
    pairs: KnownPairs,
    ctx: ExecutionContext,
  ): Promise<ValidationPairs>;
  heldOut(
    data: SortedPairs<Types>,
    test: ValidationPairs,
    ctx: ExecutionContext,
  ): Promise<HeldOutPairs | undefined>;
  facts(sorted: Types['sorted'], ctx: ExecutionContext): Promise<Types['facts']>;
  judge(data: InspectedData<Types>, ctx: ExecutionContext): Promise<Judged>;

  /** Number of elements of each matrix that a checkpoint stores. */
  matrices(data: InspectedData<Types>): Readonly<Record<string, number>>;
  ready(data: InspectedData<Types>, ctx: ExecutionContext): Promise<Types['ready']>;
  /**
   * Throws UsageError for a plan of other parameters or data. If `data` is not given, only parameters are
   * compared.
   */
  requireProblem(given: GivenPlan, data?: InspectedData<Types>): void;
  /**
   * Reads the choice (see FitTypes) from a given plan. Throws UsageError if it does not suit these ratings.
   * `profiles`: the sizes of the ratings that are trained on, and of the ratings as they were read.
   */
  plannedChoice(
    plan: GivenPlan,
    data: InspectedData<Types>,
    profiles: readonly [known: RatingsProfile, asRead: RatingsProfile],
    ctx: ExecutionContext,
  ): Promise<Types['choice']>;
  choose(data: InspectedData<Types>, ready: Types['ready'], ctx: ExecutionContext): Promise<Types['choice']>;
  /** Makes the plan. `compute`: the devices that are left, after others were lost. */
  planFor(
    profile: RatingsProfile,
    data: InspectedData<Types>,
    choice: Types['choice'],
    compute?: readonly DeviceInfo[],
  ): PhysicalPlan;
  /** Called with the final plan before it runs. */
  planned(data: InspectedData<Types>, chosen: ChosenPlan<Types>, ctx: ExecutionContext): Promise<void>;

  /** True if the means of the ratings may be computed while devices train. */
  judgesWhileTraining(home: Types['home']): boolean;
  train(
    data: InspectedData<Types>,
    chosen: ChosenPlan<Types>,
    options: { readonly fetched: () => void },
    ctx: ExecutionContext,
  ): Promise<EndedTraining['result']>;
  model(data: InspectedData<Types>, chosen: ChosenPlan<Types>): ModelFacts;
}
