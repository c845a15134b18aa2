import type { ExecutionContext } from '../../engine/run/context.ts';
import { withMeasures } from '../../engine/plan/physical-plan.ts';
import { BAD_ROWS } from '../../operators/ratings/rows/bad-rows.ts';
import { LostTrainingError } from './lost-training.ts';
import { judgeRanking } from './rank-held-out.ts';
import { judge, judgeCourse, tellWarnings } from './look-at-ratings.ts';
import { Model } from '../model.ts';

import { weightJson } from '../../operators/als/implicit/rating-weight.ts';
import type { EndedTraining } from './ended-training.ts';

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
