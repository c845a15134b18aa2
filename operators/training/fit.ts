import { CapacityError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { counted } from '../../engine/format.ts';
import type { ValueWeight } from '../../engine/numbers/value-index.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { type PlanDevices, planDevices } from '../../engine/run/devices.ts';
import { constant, type Scope, type ScopeStage } from '../../engine/run/scope.ts';
import type { EffectiveRatings } from '../als/implicit/effective-ratings.ts';
import type { TrainingWarning } from '../evaluation/model-warnings.ts';
import type { HeldOutPairs } from '../evaluation/ranking/held-out-ranking.ts';
import type { Baselines, DampedMeans, RatingShape } from '../evaluation/rating-facts.ts';
import {
  type GivenPlan,
  ifFits,
  plannedDevices,
  requireFits,
  requireProblem,
  requireSizes,
} from '../planner/given-plan.ts';
import { loadingStages } from '../planner/load-stages.ts';
import { dataBytes, type MemoryBudget } from '../planner/memory-budget.ts';
import type { RatingsProfile } from '../planner/sizes.ts';
import { keepKnown, type KnownPairs, type ReadPairs } from '../ratings/ids/known-pairs.ts';
import type { IndexedRatings } from '../ratings/ids/number-ids.ts';
import { type KeptForms, loadedOnce } from '../ratings/kept-forms.ts';
import type { RatingBlock, Ratings } from '../ratings/ratings.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';
import {
  type EndedTraining,
  type FinalRanking,
  type ValidationPairs,
  findProblems,
} from './ended-training.ts';
import type { Checkpoints, Matrices, TrainingIteration } from './training.ts';

/** The ratings to train on, as the caller of a fit reads them. */
export interface FitRatings {
  /** The steps that give the ratings, as plans print them. */
  readonly input: string;
  /** All settings on which the loaded ratings depend, as text. */
  readonly form: string;
  readonly duplicates: DuplicatePolicy;
  /** Set if they are read as weights that halve with their age before `iso`. */
  readonly weighing?: { readonly weight: ValueWeight; readonly iso: string } | undefined;
  /** Set if they stay loaded between fits. They are then one block in memory. */
  readonly kept: KeptForms | undefined;
  /** Warnings that were reported when their columns were found. */
  readonly warnings: readonly TrainingWarning[];
  /**
   * Reads them and numbers their users and items. By default they must fit in one block in memory. `inParts`:
   * they may exceed it, in memory or in files; `inBands`: in memory. Throws DataError, CapacityError.
   */
  index(
    ctx: ExecutionContext,
    limits?: { readonly inParts?: boolean; readonly inBands?: boolean },
  ): Promise<IndexedRatings>;
}

/** The validation set, as the caller of a fit reads it. */
export interface FitValidation {
  /** See FitRatings. */
  readonly kept: KeptForms | undefined;
  read(ctx: ExecutionContext): Promise<ReadPairs>;
}

/** Checkpoints of a fit. */
export interface FitCheckpoints extends Checkpoints<Matrices> {
  /**
   * Loads the checkpoint to continue from, if any, and returns its plan. `lengths`: numbers in each matrix of
   * the factors. At most `keptBytes` of them may stay in memory until their first use. Throws UsageError for
   * a checkpoint of other data.
   */
  begin(
    data: Pick<IndexedRatings, 'users' | 'items'> & {
      readonly ratings: Ratings;
      readonly test: RatingBlock | undefined;
      readonly attributes?: ReadRatings['attributes'];
    },
    lengths: Readonly<Record<string, number>>,
    keptBytes: number,
    ctx: ExecutionContext,
  ): Promise<GivenPlan | undefined>;
  /** Receives the plan of this run, and the plan of the checkpoint from which it continues. */
  planned(plan: PhysicalPlan, before: GivenPlan | undefined): void;
}

/** A fit before it starts: its scope, its ratings, and what its caller does for it. */
export interface FitRun<Model> {
  readonly scope: Scope;
  readonly ratings: FitRatings;
  readonly validation: FitValidation | undefined;
  /** The plan that the fit must have. */
  readonly given: GivenPlan | undefined;
  readonly checkpoints: FitCheckpoints | undefined;
  readonly budget: MemoryBudget;
  /** True if the caller has set a memory budget, so that nothing is allocated on a guess. */
  readonly bounded: boolean;
  /** Most users over which rankings are measured. */
  readonly rankUsers: number;
  /** True if the validation pairs are ranked after training. */
  readonly ranksHeldOut: boolean;
  /** Decides, after training, if this model ranks them; default true. */
  readonly ranks?: ((best: TrainingIteration | undefined) => boolean) | undefined;
  /** Waits until the devices are open. Throws UsageError for a parameter that they do not support. */
  openDevices(ctx: ExecutionContext): Promise<void>;
  /** Called when the devices are not needed any more. */
  trained(): void;
  model(ended: EndedTraining, ctx: ExecutionContext): Promise<Model>;
}

/** The algorithm of a fit, as the functions here know it. */
export interface FitAlgorithm {
  readonly algorithm: 'als' | 'sgd';
  /** Prefix of the names of the forms in which it loads ratings (see KeptForms). */
  readonly form: string;
  /** The parameters for comparison with a given plan, before the ratings are known. */
  readonly params: { readonly rank: number; readonly seed: number };
  /** True if a model is updated by new ratings, which may be few and need no warnings. */
  readonly updates: boolean;
}

/** Ratings that have been read, with their ids numbered. */
export interface ReadRatings {
  readonly indexed: IndexedRatings;
  readonly profile: RatingsProfile;
  /** Attributes of the numbered users and items, as AttributeMatrix has them. */
  readonly attributes?: Partial<Record<'users' | 'items', RatingBlock>> | undefined;
}

/** Sorted ratings. */
export interface SortedData {
  /** Ratings by row with their original values, from which the fingerprint of a checkpoint is computed. */
  readonly byRow: Ratings;
  /** Ratings whose pair occurred earlier in the input. */
  readonly duplicates: number;
  readonly implicit?: EffectiveRatings | undefined;
}

/** Sorted ratings with their counts and checks. `home`: the expected plan, and what follows from it. */
export interface InspectedData {
  readonly read: ReadRatings;
  readonly home: object;
  readonly sorted: SortedData;
  readonly facts: RatingShape;
  readonly test: ValidationPairs | undefined;
}

/** The means of the ratings, which the model stores, and their errors on the validation set. */
export interface RatingMeans {
  readonly means?: DampedMeans | undefined;
  readonly baselines?: Baselines | undefined;
}

/** The stages with these results. */
export type StagesOf<Results> = { readonly [Name in keyof Results]: ScopeStage<Results[Name]> };

/** The devices to train on, once they are open. A given plan names them; else all are used. */
export function devicesOf(given: GivenPlan | undefined, { executor }: ExecutionContext): PlanDevices {
  const devices = planDevices(executor);
  return given ? plannedDevices(given, devices) : devices;
}

/**
 * Reads the ratings while devices open. `begun` ends when the first rows have been read. With a given plan,
 * parameters and devices are compared with it before anything is read.
 */
export function readStages<Read>(
  { scope, given, ratings, budget, openDevices }: FitRun<unknown>,
  { algorithm, form, params }: FitAlgorithm,
  index: (ctx: ExecutionContext) => Promise<Read>,
) {
  ratings.kept?.makeRoom(form, budget);
  const reading = Promise.withResolvers<void>();
  const begun = { name: 'first ratings', result: reading.promise };
  const opened = scope.stage(
    'open devices',
    {},
    async (_, ctx) => {
      await openDevices(ctx);
      if (given) requireProblem(given, { algorithm, params });
      if (given) devicesOf(given, ctx);
    },
    { need: 'none' },
  );
  const read = scope.stage(
    loadingStages.read,
    {},
    (_, ctx) => {
      const events: EventSink = (event) => {
        if (event.type === 'phase-progress') reading.resolve();
        ctx.events(event);
      };
      return loadedOnce(ratings.kept, `${form} index`, () => index({ ...ctx, events })).finally(
        reading.resolve,
      );
    },
    { after: given ? [opened] : [] },
  );
  return { begun, opened, read };
}

/**
 * Reads the validation set once the first ratings have been read, and finds its known pairs. `load` gives
 * them the form of the training ratings. `sorted`: set if that form needs the sorted ratings.
 */
export function validationStage<Read extends ReadRatings, Home, Sorted>(
  { scope, validation }: FitRun<unknown>,
  { form }: FitAlgorithm,
  { begun, read, home, sorted }: StagesOf<{ begun: void; read: Read; home: Home; sorted: Sorted }>,
  load: (known: KnownPairs, sorted: Sorted, ctx: ExecutionContext) => Promise<ValidationPairs>,
): ScopeStage<ValidationPairs | undefined> {
  if (validation === undefined) return constant('validation pairs', undefined);
  // If the validation set is kept between fits, its pairs may be loaded already.
  const pairs = validation.kept
    ? constant('validation set', undefined)
    : scope.stage('read validation set', { begun }, (_, ctx) => validation.read(ctx));
  return scope.stage('validation pairs', { read, home, pairs, sorted }, (data, ctx) =>
    loadedOnce(validation.kept, `${form} pairs`, async () => {
      using _ = ctx.metrics.begin('test set');
      const found = data.pairs ?? (await validation.read(ctx));
      return load(await keepKnown(found, data.read.indexed, ctx), data.sorted, ctx);
    }),
  );
}

/** Prepares the validation pairs for a ranking after the training, if one is wanted. */
export function heldOutStage<Data extends { readonly test: ValidationPairs | undefined }>(
  { scope, validation, ranksHeldOut, rankUsers }: FitRun<unknown>,
  { form, params: { seed } }: FitAlgorithm,
  stages: StagesOf<Data>,
  load: (data: Data, block: RatingBlock, ctx: ExecutionContext) => Promise<HeldOutPairs | undefined>,
): ScopeStage<HeldOutPairs | undefined> {
  return scope.stage('held-out pairs', stages, (found, ctx) => {
    const data = found as unknown as Data;
    const { test } = data;
    if (validation === undefined || test === undefined || !ranksHeldOut) return undefined;
    return loadedOnce(validation.kept, `${form} held out ${seed} ${rankUsers}`, () =>
      load(data, test.block, ctx),
    );
  });
}

/** Computes facts about the sorted ratings. */
export function factsStage<Sorted extends SortedData, Facts>(
  { scope, ratings }: FitRun<unknown>,
  { form }: FitAlgorithm,
  sorted: ScopeStage<Sorted>,
  factsOf: (sorted: Sorted, ctx: ExecutionContext) => Promise<Facts>,
): ScopeStage<Facts> {
  return scope.stage('look at ratings', { sorted }, (found, ctx) => {
    reportDuplicates(found.sorted.duplicates, ratings.duplicates, ctx);
    return loadedOnce(ratings.kept, `${form} facts`, () =>
      lookAtRatings(ctx, () => factsOf(found.sorted, ctx)),
    );
  });
}

/** Reports, as a note, ratings whose pair occurred before. */
export function reportDuplicates(count: number, policy: DuplicatePolicy, { events }: ExecutionContext): void {
  if (count > 0)
    events({
      type: 'note',
      text: `${counted(count, 'rating')} ${count === 1 ? 'repeats' : 'repeat'} an earlier (user, item) pair; policy: ${policy}`,
    });
}

/** Runs an inspection of ratings under its measure. */
export async function lookAtRatings<Result>(
  ctx: ExecutionContext,
  inspect: () => Promise<Result>,
): Promise<Result> {
  using _ = ctx.metrics.begin('look at ratings');
  return await inspect();
}

/** Warns of ratings that look wrong. */
export function warningsStage(
  { scope, ratings }: FitRun<unknown>,
  { params: { rank }, updates }: FitAlgorithm,
  data: ScopeStage<InspectedData>,
): ScopeStage<readonly TrainingWarning[]> {
  return scope.stage('warnings', { data }, ({ data: { sorted, facts, test } }, ctx) => {
    const { duplicates, implicit } = sorted;
    const found = { duplicates, policy: ratings.duplicates, test, rank, implicit, update: updates };
    return [...findProblems(facts, found, ctx), ...ratings.warnings];
  });
}

/**
 * The largest share of the memory for data that matrices of a checkpoint may take from its check to their
 * first use.
 */
const KEPT_SHARE = 1 / 8;

/**
 * Loads the checkpoint from which the fit continues, and returns its plan. `matrices`: numbers in each matrix
 * of the factors.
 */
export function resumeStage<Data extends InspectedData>(
  { scope, checkpoints, budget }: FitRun<unknown>,
  data: ScopeStage<Data>,
  matrices: (data: Data) => Readonly<Record<string, number>>,
): ScopeStage<GivenPlan | undefined> {
  return scope.stage('resume', { data }, async ({ data: found }, ctx) => {
    const { read, sorted, test } = found;
    const { users, items } = read.indexed;
    const { attributes } = read;
    const saved = { users, items, ratings: sorted.byRow, test: test?.block, attributes };
    return checkpoints?.begin(saved, matrices(found), KEPT_SHARE * dataBytes(budget), ctx);
  });
}

/** The final plan, with the choice on which it depends: kernels for ALS, the order of steps for SGD. */
export interface FinalPlan<Choice> {
  readonly choice: Choice;
  readonly plan: PhysicalPlan;
}

/**
 * Makes the final plan: the given plan, or the plan of a resumed checkpoint, or one chosen for the ratings.
 * `known`: the sizes of the ratings that are trained on. `planned` reads the choice from a plan. Throws
 * UsageError if the given plan differs from the plan that its choice makes for these ratings, with and without
 * repeated pairs and pairs of unknown ids.
 */
export async function finalPlan<Choice>(
  { given, checkpoints }: FitRun<unknown>,
  { algorithm, params }: Pick<FitAlgorithm, 'algorithm' | 'params'>,
  { read, test }: InspectedData,
  known: RatingsProfile,
  resumed: GivenPlan | undefined,
  choosing: {
    planned(plan: GivenPlan, profiles: readonly RatingsProfile[]): Promise<Choice>;
    choose(): Promise<Choice>;
    planOf(profile: RatingsProfile, choice: Choice): PhysicalPlan;
  },
): Promise<FinalPlan<Choice>> {
  const asRead: RatingsProfile = {
    ...known,
    ratings: read.indexed.rows,
    testRatings: test && test.block.ratings + test.coldPairs,
  };
  const profiles = [known, asRead];
  if (given) requireSizes(given, profiles);
  if (given) requireProblem(given, { algorithm, params });
  const choice = given
    ? await choosing.planned(given, profiles)
    : ((resumed && (await ifFits(() => choosing.planned(resumed, profiles)))) ?? (await choosing.choose()));
  const plan = choosing.planOf(known, choice);
  checkpoints?.planned(plan, resumed);
  if (given) requireFits(given, [plan, choosing.planOf(asRead, choice)]);
  return { choice, plan };
}

/** The results of training: the factors, and when it started, in milliseconds by performance.now(). */
export interface Trained {
  readonly loaded: number;
  readonly result: EndedTraining['result'];
}

/**
 * Trains. `train` must call `fetched` when the factors are in host memory, to close GPUs early; it does
 * nothing if held-out pairs are ranked, which needs the devices again.
 */
export function trainStage<Data, Chosen>(
  { scope, trained }: FitRun<unknown>,
  { data, heldOut, chosen }: StagesOf<{ data: Data; heldOut: HeldOutPairs | undefined; chosen: Chosen }>,
  train: (
    found: { readonly data: Data; readonly chosen: Chosen; readonly fetched: () => void },
    ctx: ExecutionContext,
  ) => Promise<EndedTraining['result']>,
): ScopeStage<Trained> {
  return scope.stage(loadingStages.train, { data, heldOut, chosen }, async (found, ctx) => {
    const loaded = performance.now();
    const fetched = () => found.heldOut === undefined && trained();
    const { data: ratings, chosen: plan } = found;
    return { loaded, result: await train({ data: ratings, chosen: plan, fetched }, ctx) };
  });
}

/** Ranks the held-out pairs by the trained factors, and creates the model. */
export function finishStages<Model, Data extends InspectedData, Chosen>(
  { scope, ranks, ...run }: FitRun<Model>,
  {
    data,
    heldOut,
    warnings,
    means,
    chosen,
    trained,
  }: StagesOf<{
    data: Data;
    heldOut: HeldOutPairs | undefined;
    warnings: readonly TrainingWarning[];
    means: RatingMeans;
    chosen: Chosen;
    trained: Trained;
  }>,
  factsOf: (
    data: Data,
    chosen: Chosen,
  ) => Pick<EndedTraining, 'about' | 'itemCounts' | 'userCounts' | 'ratingWeight' | 'planned'>,
): Promise<Model> {
  const ranked = scope.stage('rank held-out pairs', { heldOut, trained }, async (found, ctx) => {
    if (found.heldOut === undefined) return undefined;
    const ranking = await rankHeldOut(found.heldOut, found.trained.result, ranks, ctx);
    run.trained();
    return ranking;
  });
  return scope.stage('model', { data, warnings, means, chosen, trained, ranked }, (found, ctx) => {
    const { read, sorted, test } = found.data;
    return run.model(
      {
        ...factsOf(found.data, found.chosen),
        users: read.indexed.users,
        items: read.indexed.items,
        ratings: sorted.byRow.ratings,
        duplicates: sorted.duplicates,
        test: test && { ...test, baselines: found.means.baselines },
        findings: { warnings: found.warnings, means: found.means.means },
        ...found.trained,
        ranked: found.ranked,
      },
      ctx,
    );
  }).result;
}

/**
 * Ranks held-out pairs by a trained model. If the device has no room for that, warns instead of losing the
 * model.
 */
async function rankHeldOut(
  pairs: HeldOutPairs,
  result: EndedTraining['result'],
  ranks: FitRun<unknown>['ranks'],
  ctx: ExecutionContext,
): Promise<FinalRanking | undefined> {
  const best = result.iterations.find(({ iteration }) => iteration === result.bestIteration);
  if (result.lost !== undefined || ranks?.(best) === false) return undefined;
  const started = performance.now();
  try {
    const ranking = await pairs.rank(result.sides, ctx);
    return { ranking, seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    if (!(error instanceof CapacityError)) throw error;
    ctx.events({ type: 'warning', text: `the held-out pairs were not ranked: ${error.summary}` });
    return undefined;
  }
}
