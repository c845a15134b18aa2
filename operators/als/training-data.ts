/** Computes facts about ratings that ALS needs before training. */
import type { ExecutionContext } from '../../engine/run/context.ts';
import {
  validationMetric,
  type ValidationRanking,
  validationRanking,
} from '../evaluation/ranking/validation-metric.ts';
import { RANKED_USERS } from '../evaluation/ranking/ranked-users.ts';
import { sortedRatingFacts } from '../evaluation/rating-facts.ts';
import { rankingMetricOf } from '../params/common.ts';
import { inMemory } from '../ratings/parts-in-files.ts';
import type { LossFacts } from './als-training.ts';
import type { AlsData } from './bind/als-data.ts';
import { implicitWeights, positiveTargets, sortedRowShifts } from './implicit/weights.ts';
import type { SizedAlsParams } from './implicit/sized-params.ts';
import type { RatingLevel } from './rating-unit.ts';
import { itemTotals } from './solved-loss.ts';

/** Facts about the ratings; for implicit data, whose loss needs no mean, the sum of the targets. */
export async function ratingFacts(
  ratings: AlsData,
  params: SizedAlsParams,
  { unit = 1, level: known }: { readonly unit?: number; readonly level?: RatingLevel | undefined },
  ctx: ExecutionContext,
): Promise<LossFacts> {
  if (params.implicitPrefs) {
    const level = { mean: 0, deviation: 0, columns: new Float32Array(0) };
    const targets = await positiveTargets(ratings.byUser, implicitWeights(params), ctx);
    return { offset: 0, unit, level, targets };
  }
  const level = known ?? (await sortedRatingFacts(ratings, ctx));
  return { offset: params.regOffset * level.deviation, unit, level, targets: 0 };
}

/** A ranking metric of the validation pairs: measured by steps of the plan, or on the host. */
export interface RankedPairs {
  readonly ranking?: ValidationRanking;
  readonly rank?: ReturnType<typeof validationMetric>;
}

/**
 * Rankings of implicit data are steps of the plan. With biases they are measured on the host, where biases
 * are folded into the factors.
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
 * The ratings, with further inputs of the plan's steps: shifts of implicit rows, totals of items with biases.
 */
export async function trainedData(
  ratings: AlsData,
  params: SizedAlsParams,
  level: RatingLevel,
  { ranking }: RankedPairs,
  ctx: ExecutionContext,
): Promise<AlsData> {
  const { byUser, byItem } = ratings;
  const test = ranking?.positives ?? ratings.test;
  if (!params.implicitPrefs)
    return { ...ratings, ...(params.biases ? { totals: itemTotals(byItem, level) } : {}), test };
  const shifts = {
    users: await sortedRowShifts(byUser, byItem.rows, params, ctx),
    items: await sortedRowShifts(byItem, byUser.rows, params, ctx),
  };
  return { ...ratings, shifts, test };
}
