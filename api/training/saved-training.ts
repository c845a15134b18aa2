import { MODEL_FORMAT } from '../../connectors/model/decode-metadata.ts';
import type { JsonObject } from '../../engine/json.ts';
import { type KeyColumn, keyCount } from '../../engine/keys/key-column.ts';
import { savedPlan } from '../../operators/planner/given-plan.ts';
import type { TrainingReport } from '../reports/training-report.ts';

/**
 * The facts about a training that are saved with its model. Everything that differs between runs of the same
 * data, seed and plan (times, number of threads) is left out, so that equal models have equal bytes.
 */
export function savedTraining(
  report: TrainingReport,
  users: KeyColumn,
  items: KeyColumn,
  ratingCol: string,
  meanRating?: number,
): JsonObject {
  const { planned } = report;
  return {
    format: MODEL_FORMAT,
    algorithm: report.algorithm,
    // Spark's own metadata has another `rank`, outside this object: the number of stored features, which
    // includes biases.
    rank: report.params.rank,
    params: { ...report.params },
    ratingCol,
    idTypes: { user: users.type, item: items.type },
    users: keyCount(users),
    items: keyCount(items),
    ratings: report.ratings,
    duplicates: report.duplicates,
    badRows: report.badRows,
    // Undefined without damped means. The means of users and items are in the folders userMeans/ and
    // itemMeans/.
    meanRating,
    // Undefined unless λ or regOffset is in units of it.
    ratingDeviation: report.ratingDeviation,
    // Undefined for explicit ratings.
    ratingWeight: report.ratingWeight,
    bestIteration: report.bestIteration,
    iterations: report.iterations.map(({ seconds: _seconds, ...iteration }) => iteration),
    ...(report.coldPairs === undefined ? {} : { testPairs: report.testPairs, coldPairs: report.coldPairs }),
    baselines: report.baselines,
    warnings: report.warnings,
    tuning: report.tuning,
    plan: savedPlan(planned),
  };
}
