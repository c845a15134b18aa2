import type { ExecutionContext } from '../../engine/run/context.ts';
import { withMeasures } from '../../engine/plan/physical-plan.ts';
import { BAD_ROWS } from '../../operators/ratings/rows/bad-rows.ts';
import { LostTrainingError } from './lost-training.ts';
import { judgeRanking } from './rank-held-out.ts';
import { judge, judgeCourse, reportWarnings } from './rating-findings.ts';
import { Model } from '../model.ts';
import type { TrainingReport } from '../reports/training-report.ts';
import type { TrainingWarning } from '../../operators/evaluation/rating-warnings.ts';
import { weightJson } from '../../operators/als/implicit/rating-weight.ts';
import type { EndedTraining } from './ended-training.ts';

/**
 * Creates the model of a training run, with its report. Throws LostTrainingError, which has the model, if the
 * last device was lost.
 */
export function trainedModel(ended: EndedTraining, ctx: ExecutionContext): Model {
  const { about, columns, result } = ended;
  const { rank, biases } = about.params;
  const verdict = verdictOf(ended);
  reportWarnings(verdict, ctx);
  const model = new Model({
    rank: rank + (biases ? 2 : 0),
    users: ended.users,
    items: ended.items,
    userFactors: result.sides.users,
    itemFactors: result.sides.items,
    itemCounts: ended.itemCounts,
    userCounts: ended.userCounts,
    columns: { user: columns.user, item: columns.item, rating: columns.rating, prediction: 'prediction' },
    coldStartStrategy: ended.input.coldStartStrategy,
    means: ended.findings.means,
    session: ended.session,
    rated: ended.rated,
    training: reportOf(ended, verdict, ctx),
  });
  if (result.lost) throw new LostTrainingError(result.lost, model, result.bestIteration);
  return model;
}

/**
 * Warnings about a trained model: about its best iteration, the errors over its iterations, and its rankings.
 */
function verdictOf({ about, test, findings, result, ranked }: EndedTraining): TrainingWarning[] {
  const best = result.iterations.find(({ iteration }) => iteration === result.bestIteration);
  return [
    ...(best ? judge(about.params, best, test?.baselines) : []),
    ...(test ? judgeCourse({ ...about, ...result }, test, findings) : []),
    ...(ranked ? judgeRanking(about, ranked.ranking) : []),
  ];
}

function reportOf(
  ended: EndedTraining,
  verdict: readonly TrainingWarning[],
  ctx: ExecutionContext,
): TrainingReport {
  const { about, test, result, ranked, resumedFrom, ratingWeight } = ended;
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
    seconds: secondsOf(ended),
    plan: withMeasures(result.plan, ctx.metrics),
    planned: ended.planned,
    ...(resumedFrom && { resumedFrom }),
    ratingDeviation: result.ratingDeviation,
    ...(ratingWeight && { ratingWeight: weightJson(ratingWeight) }),
    tuning: ended.tuning,
  };
}

function secondsOf({ started, loaded, test, result, ranked }: EndedTraining): TrainingReport['seconds'] {
  return {
    load: (loaded - started) / 1000,
    train: (performance.now() - loaded) / 1000 - (ranked?.seconds ?? 0),
    ...(test && { validation: result.measureSeconds }),
    ...(ranked && { ranking: ranked.seconds }),
  };
}
