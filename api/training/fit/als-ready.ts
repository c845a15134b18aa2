import type { ExecutionContext } from '../../../engine/run/context.ts';
import { profileOfSorted } from '../../../operators/als/kernel-choices.ts';
import { learnWeight } from '../../../operators/als/implicit/rating-weight.ts';
import { knownForm } from '../../../operators/als/implicit/sized-params.ts';
import { weightedRatings } from '../../../operators/als/implicit/weighted-ratings.ts';
import { ratingsInUnit, ratingUnit } from '../../../operators/als/rating-unit.ts';
import type { Ratings } from '../../../operators/ratings/ratings.ts';
import { isKept, ownRatings } from '../kept-ratings.ts';
import type { InspectedData } from './algorithm.ts';
import type { FitRun } from './fit-run.ts';
import type { AlsReady, AlsTypes } from './als-types.ts';

export async function readyRatings(
  { ratings, scope }: FitRun,
  { read, home, sorted, facts, test }: InspectedData<AlsTypes>,
  ctx: ExecutionContext,
): Promise<AlsReady> {
  const { indexed, profile } = read;
  const { params } = home;
  const { byUser, byItem } = sorted.sides;
  const unit = params.implicitPrefs ? 1 : ratingUnit(facts, params.biases);
  // Blocks were sent to the device and initial factors drawn early, on the guess that ratings are not scaled
  // (unit 1); discards them if they are.
  if (unit !== 1) await scope.discard([...sorted.placed, sorted.drawn]);
  const weight = params.implicitPrefs
    ? await learnWeight(knownForm(params), byUser, indexed.itemCounts, ctx)
    : undefined;
  const scale = async (one: Ratings, rows: 'users' | 'items') => {
    const own = await ownRatings(ratings, one, ctx);
    if (weight === undefined) return ratingsInUnit(own, unit, ctx);
    if (weight.changesNothing) return own;
    const options = { counts: indexed.itemCounts, keeps: isKept(ratings) };
    return weightedRatings({ ratings: own, rows }, weight, options, ctx);
  };
  const sides = { byUser: await scale(byUser, 'users'), byItem: await scale(byItem, 'items') };
  const largest = Math.max(Math.abs(facts.least), Math.abs(facts.most)) / unit;
  return {
    sides,
    unit,
    weight,
    known: {
      ...profile,
      ...(home.devices.compute[0].choosesKernels && profileOfSorted(sides, weight?.largest ?? largest)),
      ratings: byUser.ratings,
      testRatings: test?.block.ratings,
    },
  };
}
