import type { JsonObject } from '../../engine/json.ts';
import { type ExecutionContext, followed } from '../../engine/run/context.ts';
import { Holdings } from '../../engine/run/holdings.ts';
import { Scope } from '../../engine/run/scope.ts';
import type { ContinuedAls } from '../../operators/als/sort.ts';
import { dataBytes } from '../../operators/planner/memory-budget.ts';
import type { FitRun } from '../../operators/training/fit.ts';
import type { FitAttributes, TrainerAttributes } from '../attributes.ts';
import type { Dataset } from '../dataset.ts';
import type { FitOptions } from '../fit-options.ts';
import { ratedRows } from '../histories.ts';
import type { Model } from '../model.ts';
import type { RatingInput } from '../rating-input.ts';
import { halfLifeToTry } from '../validation/half-life-to-try.ts';
import { mostRanked } from '../validation/ranking-options.ts';
import type { CheckpointedRun } from './checkpoints/checkpoint-state.ts';
import { type RunCheckpoints, withCheckpoints } from './checkpoints/run-checkpoints.ts';
import { budgetOf, keptForms } from './kept-ratings.ts';
import { givenPlan } from './plans/explained-plan.ts';
import { trainedModel } from './trained-model.ts';
import { dependsOnDevice, type DeviceParams, openedDevices, trainingDevice } from './training-device.ts';
import { unusedRatings } from './unrated-as-ones.ts';

/** Options of a fit, with what a search passes from one fit to the next. */
export interface ContinuedFit extends FitOptions {
  readonly continued?: Continued;
}

/** Settings of a fit that is one of several on the same ratings, such as the trials of a search, or Spark's. */
export interface Continued extends ContinuedAls {
  /** Decides if the model of this iteration ranks the validation pairs; default: the option `ranking`. */
  readonly ranks?: FitRun<Model>['ranks'];
  /** The search that chose the parameters, saved with the model. */
  readonly tuning?: JsonObject;
}

/**
 * If the columns of implicit data include no rating, adds one that is 1 in every row; else returns the data
 * set unchanged.
 */
export type Rated = (dataset: Dataset, ctx: ExecutionContext) => Promise<Dataset>;

/** A fit before its data sets are opened. */
export interface Fit {
  readonly about: CheckpointedRun & { readonly params: DeviceParams };
  readonly input: RatingInput;
  /** Rejects parameters before anything is read. */
  readonly check?: (ctx: ExecutionContext) => Promise<unknown>;
  readonly rated?: Rated;
  /** Names of the model's columns. Default: the names in the ratings. */
  readonly columns?: RatingInput['columns'];
  /** Attributes of users and items; `train` gets them as they were read. */
  readonly attributes?: TrainerAttributes;
  readonly train: (run: FitRun<Model>, attributes: FitAttributes | undefined) => Promise<Model>;
}

/** The data sets of a fit, or of its plan. */
export interface FitSets {
  readonly ratings: Dataset;
  readonly validation?: Dataset | undefined;
}

/** The data sets with the names of their columns. Throws the errors of RatingInput.found. */
export async function foundSets(
  input: RatingInput,
  { ratings, validation }: FitSets,
  ctx: ExecutionContext,
  rated: Rated = async (dataset) => dataset,
): Promise<FitSets> {
  return {
    ratings: await rated(await input.found(ratings, ctx), ctx),
    validation: validation && (await rated(await input.foundTest(validation, ctx), ctx)),
  };
}

/**
 * Trains a model. Everything from the first byte read to the last factor is one graph of stages in one scope,
 * which `fit.train` adds.
 */
export async function runFit(given: Fit, asked: Dataset, options: ContinuedFit): Promise<Model> {
  const { about } = given;
  const { session } = asked;
  const context = session.context(options);
  // Not all devices support these parameters or the plan, so devices are opened and checked before anything
  // is read.
  if (options.plan !== undefined || dependsOnDevice(about.params)) {
    await session.opened(context.events);
    trainingDevice(session.device, context.executor, about.params);
  }
  await given.check?.(context);
  const attributes = await given.attributes?.read(given.input.columns, context);
  const both = { ratings: asked, validation: options.validation };
  const sets = await foundSets(given.input, both, context, given.rated);
  const fit = { ...given, input: await given.input.weighed(sets.ratings, context) };
  const train = async (scope: Scope, checkpoints: RunCheckpoints | undefined): Promise<Model> => {
    using _ = scope.ctx.metrics.begin('plan');
    return await fit.train(fitRun(fit, sets, options, { scope, checkpoints, attributes }), attributes);
  };
  const capacityBytes = session.bounded ? dataBytes(session) : undefined;
  return followed(context, () =>
    Holdings.tidied(
      context,
      () =>
        withCheckpoints(options, about, context, (checkpoints) =>
          Scope.within(context, (scope) => train(scope, checkpoints), { capacityBytes }),
        ),
      session.tidies,
    ),
  );
}

/** The session's devices and data sets, as ports of the algorithm. */
function fitRun(
  { about, input, columns }: Fit,
  { ratings, validation }: FitSets,
  options: ContinuedFit,
  {
    scope,
    checkpoints,
    attributes,
  }: {
    readonly scope: Scope;
    readonly checkpoints: RunCheckpoints | undefined;
    readonly attributes: FitAttributes | undefined;
  },
): FitRun<Model> {
  const { session } = ratings;
  const { continued, plan } = options;
  const started = performance.now();
  return {
    scope,
    ratings: {
      input: input.describe(ratings),
      form: input.form(ratings),
      weighing: input.weighing,
      duplicates: input.onDuplicates,
      kept: keptForms(ratings),
      warnings: unusedRatings(ratings.plan),
      index: (ctx, limits) => input.index(ratings, validation, ctx, limits),
    },
    validation: validation && {
      kept: keptForms(validation),
      read: (ctx) => input.readPairs(validation, ctx),
    },
    given: plan && givenPlan(plan),
    checkpoints,
    budget: budgetOf(ratings),
    bounded: session.bounded,
    rankUsers: mostRanked(options),
    ranksHeldOut: ranksHeldOut(about.params, options),
    ranks: continued?.ranks,
    openDevices: (ctx) => openedDevices(session, about.params, ctx),
    trained: () => session.trained(),
    model: (ended, ctx) =>
      trainedModel(
        ended,
        {
          session,
          input,
          columns: columns ?? input.columnsOf(ratings),
          rated: ratedRows(ratings, input),
          resumedFrom: checkpoints?.resumedFrom,
          started,
          tuning: continued?.tuning,
          halfLifeToTry: validation && (() => halfLifeToTry({ train: ratings, test: validation }, ctx)),
          completed: attributes && ((parts, coefficients) => attributes.completed(parts, coefficients)),
        },
        ctx,
      ),
  };
}

/**
 * True if held-out pairs are ranked after training. By default only for implicit data. In a trial of a
 * search, the search decides.
 */
function ranksHeldOut(params: object, { ranking, continued }: ContinuedFit): boolean {
  if (continued !== undefined) return continued.ranks !== undefined;
  return ranking ?? ('implicitPrefs' in params && params.implicitPrefs === true);
}
