import { addValues } from '../../../engine/numbers/add-values.ts';
import { dataSetName, type PartitionRef } from '../../../engine/partition.ts';
import type { RowRange } from '../../../engine/plan/stages.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { hostDevice } from '../../../engine/run/devices.ts';
import { runSteps } from '../../../engine/run/run-steps.ts';
import { StepList } from '../../../engine/run/step-list.ts';
import { passOver } from '../../ratings/pass-over.ts';
import { hostForm } from '../../ratings/rating-block.ts';
import { heldBlocks, type Ratings } from '../../ratings/ratings.ts';
import { addSliced } from '../../tasks/run-tasks.ts';
import { contracts, type ValuesOf } from '../../tasks/tasks.ts';

/** The linear scale of ratings for SGD: a rating r becomes (r - center) / deviation. */
export interface RatingScale {
  /** μ, even if it is not subtracted. */
  readonly mean: number;
  /** μ with biases, else 0, since predictions without biases have no term for it. */
  readonly center: number;
  /**
   * The standard deviation σ of all ratings; if all are equal, their absolute value, or 1 if it is 0. It is
   * at least the lower bound that a continued model gives, and without biases at least a fraction of |μ|.
   */
  readonly deviation: number;
  /** True for ratings that are all equal, within rounding. */
  readonly alike?: boolean;
}

const STAGE = 'look-at-ratings';

/** Number of ratings that are summed sequentially. */
const RUN = 1 << 20;

/**
 * Without biases, `deviation` is at least |μ| / MOST_LEVEL. The factors must then produce the mean of the
 * ratings, and steps on such large factors would be too long. On scales of stars |μ| / σ is 3 to 6.
 */
const MOST_LEVEL = 8;

/**
 * Computes the scale of ratings in memory. `centered`: subtract the mean. `given`: a mean, and a lower bound
 * of σ, from the model that is continued.
 */
export async function ratingScale(
  ratings: Ratings,
  centered: boolean,
  given: { readonly mean?: number; readonly leastDeviation?: number },
  ctx: ExecutionContext,
): Promise<RatingScale> {
  const own = (await sumOf(ratings, undefined, ctx)) / ratings.ratings;
  const mean = given.mean ?? own;
  const deviation = Math.sqrt((await sumOf(ratings, own, ctx)) / ratings.ratings);
  // True if the deviation is at most half the relative distance between float32 numbers, that is rounding.
  const alike = deviation <= 2 ** -24 * Math.abs(own);
  const least = Math.max(given.leastDeviation ?? 0, centered ? 0 : Math.abs(own) / MOST_LEVEL);
  return {
    mean,
    center: centered ? mean : 0,
    deviation: Math.max(least, alike ? Math.abs(own) || 1 : deviation),
    alike,
  };
}

/**
 * Σ r, or with `apart` Σ (r - apart)², in float64. Runs of RUN ratings in row order are summed sequentially,
 * so ratings in one block or in bands of rows give the same bits. A run within one band is a task; runs
 * across bands are summed here.
 */
async function sumOf(ratings: Ratings, apart: number | undefined, ctx: ExecutionContext): Promise<number> {
  const { place } = hostDevice(ctx.executor).info;
  const name = dataSetName('runs');
  const sums = new Float64Array(Math.ceil(ratings.ratings / RUN));
  let first = 0;
  for (const { block } of heldBlocks(ratings)) {
    const [whole, ends]: [RowRange[], RowRange[]] = [[], []];
    for (let from = 0; from < block.ratings;) {
      const to = Math.min(block.ratings, from + RUN - ((first + from) % RUN));
      (to - from === RUN ? whole : ends).push({ from, to });
      from = to;
    }
    const run = (from: number) => Math.floor((first + from) / RUN);
    for (const { from, to } of ends)
      sums[run(from)] = addValues(sums[run(from)], block.values.subarray(from, to), apart);
    if (whole.length > 0) {
      const ref: PartitionRef = { name, partition: 0, version: first };
      const steps = new StepList(contracts);
      addSliced<'sum-values'>(
        steps,
        STAGE,
        place,
        {
          kernel: 'sum-values',
          inputs: { block: ref },
          outputs: {},
          params: apart === undefined ? {} : { apart },
        },
        whole,
      );
      steps.free(STAGE, place, [ref]);
      const found = (
        await runSteps(steps.steps, ctx, { given: [[ref, { ...hostForm(block), reused: true }, place]] })
      ).of(STAGE) as ValuesOf<'sum-values'>[];
      whole.forEach(({ from }, at) => (sums[run(from)] = found[at].sum));
    }
    first += block.ratings;
  }
  return sums.reduce((sum, one) => sum + one, 0);
}

/**
 * Converts ratings to the scale, in place. It must be called before they are sent to a device other than the
 * CPU. Returns Σ r² of the scaled ratings.
 */
export async function standardize(
  ratings: Ratings,
  { center, deviation }: RatingScale,
  ctx: ExecutionContext,
): Promise<number> {
  const slices = await passOver(ratings, ctx, ({ block }, give) => ({
    kernel: 'standardize',
    inputs: {},
    outputs: { block: give('block', hostForm(block)) },
    params: { center, deviation },
  }));
  return slices.reduce((sum, { squares }) => sum + squares, 0);
}
