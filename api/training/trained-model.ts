import type { JsonObject } from '../../engine/json.ts';
import { withMeasures } from '../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { weightJson } from '../../operators/als/implicit/rating-weight.ts';
import type { HalfLifeToTry, TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import { BAD_ROWS } from '../../operators/ratings/rows/select-ratings.ts';
import {
  meansWarnings,
  overfitWarnings,
  rankingWarnings,
  reportWarnings,
  type EndedTraining,
} from '../../operators/training/ended-training.ts';
import type { FitAttributes } from '../attributes.ts';
import type { RatedRows } from '../histories.ts';
import { Model } from '../model.ts';
import type { ModelParts } from '../model-parts.ts';
import type { RatingInput } from '../rating-input.ts';
import type { ResumedFrom } from '../reports/training-report.ts';
import type { TrainingReport } from '../reports/training-report.ts';
import type { RunSession } from '../run-session.ts';
import { LostTrainingError } from './lost-training.ts';

/** The facts about a training that its algorithm does not know. */
export interface TrainingOrigin {
  readonly session: RunSession;
  readonly input: RatingInput;
  /** The columns for the model. */
  readonly columns: RatingInput['columns'];
  readonly rated: RatedRows | undefined;
  readonly resumedFrom?: ResumedFrom | undefined;
  /** Start of the reading, in milliseconds by performance.now(). */
  readonly started: number;
  readonly tuning?: JsonObject | undefined;
  readonly halfLifeToTry?: HalfLifeToTry | undefined;
  /** Adds the attributes, and the users and items without ratings. */
  readonly completed?: FitAttributes['completed'] | undefined;
}

/**
 * Creates the model of a training run, with its report. Throws LostTrainingError, which has the model, if the
 * last device was lost.
 */
export async function trainedModel(
  ended: EndedTraining,
  origin: TrainingOrigin,
  ctx: ExecutionContext,
): Promise<Model> {
  const { about, result } = ended;
  const { columns, input, session, rated } = origin;
  const { rank, biases } = about.params;
  const verdict = await verdictOf(ended, origin);
  reportWarnings(verdict, ctx);
  const parts: ModelParts = {
    rank: rank + (biases ? 2 : 0),
    users: ended.users,
    items: ended.items,
    userFactors: result.sides.users,
    itemFactors: result.sides.items,
    itemCounts: ended.itemCounts,
    userCounts: ended.userCounts,
    columns: { user: columns.user, item: columns.item, rating: columns.rating, prediction: 'prediction' },
    coldStartStrategy: input.coldStartStrategy,
    means: ended.findings.means,
    session,
    rated,
    training: reportOf(ended, origin, verdict, ctx),
  };
  const model = new Model(origin.completed?.(parts, result.coefficients) ?? parts);
  if (result.lost) throw new LostTrainingError(result.lost, model, result.bestIteration);
  return model;
}

/**
 * Warnings about a trained model: about its best iteration, the errors over its iterations, and its rankings.
 */
async function verdictOf(
  { about, test, findings, result, ranked }: EndedTraining,
  { halfLifeToTry }: TrainingOrigin,
): Promise<TrainingWarning[]> {
  const best = result.iterations.find(({ iteration }) => iteration === result.bestIteration);
  return [
    ...(best ? meansWarnings(about.params, best, test?.baselines) : []),
    ...(test ? overfitWarnings({ ...about, ...result }, test, findings) : []),
    ...(ranked ? await rankingWarnings(about, ranked.ranking, halfLifeToTry) : []),
  ];
}

function reportOf(
  ended: EndedTraining,
  { resumedFrom, started, tuning }: TrainingOrigin,
  verdict: readonly TrainingWarning[],
  ctx: ExecutionContext,
): TrainingReport {
  const { about, test, result, ranked, ratingWeight } = ended;
  return {
    ...about,
    ratings: ended.ratings,
    duplicates: ended.duplicates,
    badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
    iterations: result.iterations,
    bestIteration: result.bestIteration,
    testPairs: test && test.block.ratings + test.coldPairs,
    coldPairs: test?.coldPairs,
    baselines: test?.baselines,
    ranking: ranked?.ranking,
    warnings: [...ended.findings.warnings, ...verdict],
    seconds: secondsOf(ended, started),
    plan: withMeasures(result.plan, ctx.metrics),
    planned: ended.planned,
    ...(resumedFrom && { resumedFrom }),
    ratingDeviation: result.ratingDeviation,
    ...(ratingWeight && { ratingWeight: weightJson(ratingWeight) }),
    tuning,
  };
}

function secondsOf(
  { loaded, test, result, ranked }: EndedTraining,
  started: number,
): TrainingReport['seconds'] {
  return {
    load: (loaded - started) / 1000,
    train: (performance.now() - loaded) / 1000 - (ranked?.seconds ?? 0),
    ...(test && { validation: result.measureSeconds }),
    ...(ranked && { ranking: ranked.seconds }),
  };
}
