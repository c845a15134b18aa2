/** Computes statistics of the ratings that ALS needs before training. */
import type { ExecutionContext } from '../../engine/run/context.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-pairs.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { rankingMetricOf } from '../params/common.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import type { LossFacts } from './als-training.ts';
import type { AlsData } from './bind/als-data.ts';
import { countPositive } from './implicit/count-positive.ts';
import { implicitWeights, positiveTargets, shiftsOf } from './implicit/weights.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import type { RatingLevel } from './rating-unit.ts';
import { itemTotals } from './solved-loss.ts';

/**
 * Computes the statistics of the ratings that the loss needs: mean and deviation, or for implicit data the
 * sum of the targets. `level`: mean and deviation, if already known.
 */
export async function ratingFacts(
  ratings: AlsData,
  params: SizedAlsParams,
  { unit = 1, level: known }: { readonly unit?: number; readonly level?: RatingLevel | undefined },
  ctx: ExecutionContext,
): Promise<LossFacts> {
  if (params.implicitPrefs) {
    const level = { mean: 0, deviation: 0, columns: new Float32Array(0) };
    const positive = await countPositive(ratings, ctx);
    return { offset: 0, unit, level, targets: positiveTargets(positive, implicitWeights(params)), positive };
  }
  const level = known ?? (await sortedRatingFacts(ratings, ctx));
  return { offset: params.regOffset * level.deviation, unit, level, targets: 0 };
}

/**
 * A ranking metric of the validation pairs. It is measured either by steps of the plan (`ranking`) or by a
 * function on the host (`rank`).
 */
export interface RankedPairs {
  readonly ranking?: ValidationRanking;
  readonly rank?: ReturnType<typeof validationMetric>;
}

/**
 * Prepares the ranking metric for early stopping, if there is one. For implicit data the plan's steps measure
 * it. For explicit data it is measured on the host, where biases are added to the factors as further
 * features.
 */
export async function rankedPairs(
  { users, items, test, byUser }: AlsData,
  params: SizedAlsParams,
  rankUsers = RANKED_USERS,
  ctx: ExecutionContext,
): Promise<RankedPairs> {
  const metric = rankingMetricOf(params);
  if (metric === undefined || test === undefined) return {};
  const pairs = { users, items, test, train: await inMemory(byUser, ctx) };
  const limits = { rankUsers, seed: params.seed };
  return params.implicitPrefs
    ? { ranking: validationRanking(metric, pairs, limits, ctx) }
    : { rank: validationMetric(metric, pairs, limits, ctx) };
}

/**
 * Adds further inputs of the plan's steps to the ratings: for implicit data, the numbers that are added to
 * the diagonals of the rows' equations (shifts); with biases, the sum of each item's ratings.
 */
export function trainedData(
  ratings: AlsData,
  params: SizedAlsParams,
  { level, positive }: LossFacts,
  { ranking }: RankedPairs,
): AlsData {
  const { byUser, byItem } = ratings;
  const test = ranking?.positives ?? ratings.test;
  if (positive === undefined)
    return { ...ratings, ...(params.biases ? { totals: itemTotals(byItem, level) } : {}), test };
  const shifts = {
    users: shiftsOf(positive.users, byItem.rows, params),
    items: shiftsOf(positive.items, byUser.rows, params),
  };
  return { ...ratings, shifts, test };
}
