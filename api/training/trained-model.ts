import type { ExecutionContext } from '../../engine/run/context.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import { type PhysicalPlan, withMeasures } from '../../engine/plan/physical-plan.ts';
import { BAD_ROWS } from '../../operators/ratings/rows/bad-rows.ts';
import type { ModelRows } from '../../operators/training/model-rows.ts';
import type { LoopResult } from '../../operators/training/training.ts';
import type { ResumedFrom } from './checkpoints/run-checkpoints.ts';
import { LostTrainingError } from './lost-training.ts';
import { judgeRanking, type RankedTraining } from './rank-held-out.ts';
import { judge, judgeCourse, type LookedAt, tellWarnings, type ValidationPairs } from './look-at-ratings.ts';
import { Model } from '../model.ts';
import type { TrainingReport } from '../reports/training-report.ts';
import type { RatingInput } from '../rating-input.ts';
import type { Session } from '../session.ts';

import { type RatingWeight, weightJson } from '../../operators/als/implicit/rating-weight.ts';

/** A run of either algorithm that has ended. */
export interface EndedTraining {
  readonly about:
    | Pick<Extract<TrainingReport, { algorithm: 'als' }>, 'algorithm' | 'params'>
    | Pick<Extract<TrainingReport, { algorithm: 'sgd' }>, 'algorithm' | 'params'>;
  readonly session: Session;
  readonly input: RatingInput;
  /** The columns that the model is to have. */
  readonly columns: RatingInput['columns'];
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Ratings of each item, those of a model that was continued among them. */
  readonly itemCounts: Uint32Array | undefined;
  readonly userCounts: Uint32Array | undefined;
  readonly ratings: number;
  readonly duplicates: number;
  readonly test: ValidationPairs | undefined;
  readonly looked: LookedAt;
  readonly result: Omit<LoopResult<unknown>, 'factors'> & {
    readonly sides: ModelRows;
    readonly plan: PhysicalPlan;
    readonly ratingDeviation?: number;
  };
  readonly planned: PhysicalPlan;
  /** Of implicit data. */
  readonly ratingWeight?: RatingWeight | undefined;
  readonly resumedFrom?: ResumedFrom | undefined;
  /** Milliseconds by performance.now(). */
  readonly started: number;
  readonly loaded: number;
  readonly ranked?: RankedTraining | undefined;
  readonly tuning?: JsonObject | undefined;
}

/**
 * The model of a training run, with its report. Throws LostTrainingError, which has the model, when the last
 * device was lost.
 */
export function trainedModel(
  {
    about,
    session,
    input,
    columns,
    users,
    items,
    itemCounts,
    userCounts,
    ratings,
    duplicates,
    test,
    looked,
    result,
    planned,
    resumedFrom,
    started,
    loaded,
    ranked,
    tuning,
    ratingWeight,
  }: EndedTraining,
  ctx: ExecutionContext,
): Model {
  const { rank, biases } = about.params;
  const { iterations, bestIteration } = result;
  const best = iterations.find(({ iteration }) => iteration === bestIteration);
  const verdict = [
    ...(best ? judge(about.params, best, test?.baselines) : []),
    ...(test ? judgeCourse({ ...about, ...result }, test, looked) : []),
    ...(ranked ? judgeRanking(about, ranked.ranking) : []),
  ];
  tellWarnings(verdict, ctx);
  const trained = (performance.now() - loaded) / 1000 - (ranked?.seconds ?? 0);
  const model = new Model({
    rank: rank + (biases ? 2 : 0),
    users,
    items,
    userFactors: result.sides.users,
    itemFactors: result.sides.items,
    itemCounts,
    userCounts,
    columns: { user: columns.user, item: columns.item, rating: columns.rating, prediction: 'prediction' },
    coldStartStrategy: input.coldStartStrategy,
    means: looked.means,
    session,
    training: {
      ...about,
      ratings,
      duplicates,
      badRows: ctx.metrics.get(BAD_ROWS)?.rows ?? 0,
      iterations,
      bestIteration,
      testPairs: test && test.block.ratings + test.coldPairs,
      coldPairs: test?.coldPairs,
      baselines: test?.baselines,
      ranking: ranked?.ranking,
      warnings: [...looked.warnings, ...verdict],
      seconds: {
        load: (loaded - started) / 1000,
        train: trained,
        ...(test && { validation: result.measureSeconds }),
        ...(ranked && { ranking: ranked.seconds }),
      },
      plan: withMeasures(result.plan, ctx.metrics),
      planned,
      ...(resumedFrom && { resumedFrom }),
      ratingDeviation: result.ratingDeviation,
      ...(ratingWeight && { ratingWeight: weightJson(ratingWeight) }),
      tuning,
    },
  });
  if (result.lost) throw new LostTrainingError(result.lost, model, result.bestIteration);
  return model;
}
