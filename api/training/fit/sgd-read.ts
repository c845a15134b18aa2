import { counted } from '../../../engine/format.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import type { DampedMeans } from '../../../operators/evaluation/baselines.ts';
import type { RatingsProfile } from '../../../operators/planner/profile.ts';
import { type WidenedRatings, widenRatings } from '../../../operators/ratings/ids/relabel.ts';
import type { FactorModel } from '../../../operators/serving/factor-model.ts';
import type { SgdParams } from '../../../operators/sgd/params.ts';
import type { SgdPlanDetails } from '../../../operators/sgd/problem.ts';
import type { Dataset } from '../../dataset.ts';
import { describeInput, type RatingInput } from '../../rating-input.ts';
import { isKept } from '../kept-ratings.ts';
import type { ReadRatings } from './algorithm.ts';

/** The parameters and input of a training by SGD. */
export interface SgdTraining {
  readonly params: SgdParams;
  readonly input: RatingInput;
  /** The model to continue; its users and items stay in the new model. */
  readonly start?: FactorModel;
  /** Number of ratings of each item of that model, if the model has them. */
  readonly startCounts?: Uint32Array;
  /** Damped means of that model's ratings, if the model has them. */
  readonly startMeans?: DampedMeans | undefined;
  /** σ of that model's ratings, if the model has it. */
  readonly startDeviation?: number;
  /**
   * λ of the epochs, if it differs from the λ in `params`. New users and items are solved with the λ in
   * `params`.
   */
  readonly stepLambda?: number;
}

/** The parameters with which the epochs run, for the plan and the training. */
export function stepParams({ params, start, stepLambda }: SgdTraining): SgdParams {
  const lambda =
    stepLambda === undefined
      ? {}
      : { regParam: stepLambda, regParamUsers: undefined, regParamItems: undefined };
  return start === undefined ? params : { ...params, ...lambda, regOffset: 0, biasDamping: 0 };
}

/**
 * True if ratings may be sorted into bands, when they exceed one block. False for ratings that are cached
 * between fits, and for ratings with which a model is continued.
 */
function mayBeInBands({ start }: SgdTraining, ratings: Dataset): boolean {
  return start === undefined && !isKept(ratings);
}

/** Ratings that have been read, and the details for a plan. */
export interface SgdRead extends ReadRatings {
  /** If a model is continued: the ratings and the model's factors, numbered together. */
  readonly widened: WidenedRatings | undefined;
  readonly details: SgdPlanDetails;
}

/**
 * Reads the ratings and numbers their ids, together with a model's ids if there is one. Also returns the
 * details for a plan.
 */
export async function indexFit(
  fit: SgdTraining,
  ratings: Dataset,
  validation: Dataset | undefined,
  ctx: ExecutionContext,
): Promise<SgdRead> {
  const { input, start, stepLambda } = fit;
  const own = await input.index(ratings, validation, ctx, { inBands: mayBeInBands(fit, ratings) });
  const widened = start && (await widenRatings(own, start, ctx));
  const indexed = widened?.indexed ?? own;
  const { users, items, itemCounts, userCounts } = indexed;
  if (start) {
    const fresh = [keyCount(users) - keyCount(start.users), keyCount(items) - keyCount(start.items)];
    ctx.events({
      type: 'note',
      text:
        `training continues from a model of ${counted(keyCount(start.users), 'user')} and ` +
        `${counted(keyCount(start.items), 'item')}; new: ${counted(fresh[0], 'user')}, ` +
        `${counted(fresh[1], 'item')}`,
    });
  }
  const details: SgdPlanDetails = {
    itemCounts,
    userCounts,
    ...(start ? { start: stepLambda === 0 ? 'a model, by steps of λ = 0' : 'a model' } : {}),
  };
  const profile: RatingsProfile = {
    users: keyCount(users),
    items: keyCount(items),
    ratings: indexed.rows,
    input: describeInput(ratings.plan),
  };
  return { indexed, widened, profile, details };
}

/**
 * Number of ratings of each item. If a model is continued, its counts are added at the items' new positions;
 * if it has no counts, the result is undefined.
 */
export function countsWith(
  { start, startCounts }: SgdTraining,
  own: Int32Array,
  places: Uint32Array | undefined,
): Uint32Array | undefined {
  const counts = new Uint32Array(own);
  if (start === undefined) return counts;
  startCounts?.forEach((count, item) => (counts[places?.[item] ?? item] += count));
  return startCounts && counts;
}

/** The means of the continued model, at the new positions of its ids; NaN for new ids. */
export function earlierMeans(
  { startMeans }: SgdTraining,
  widened: WidenedRatings | undefined,
): DampedMeans | undefined {
  if (startMeans === undefined || widened === undefined) return undefined;
  const placed = (means: Float32Array, places: Uint32Array, ids: KeyColumn) => {
    const all = new Float32Array(keyCount(ids)).fill(Number.NaN);
    for (let i = 0; i < means.length; i++) all[places[i]] = means[i];
    return all;
  };
  const { users, items, indexed } = widened;
  return {
    mean: startMeans.mean,
    users: placed(startMeans.users, users, indexed.users),
    items: placed(startMeans.items, items, indexed.items),
  };
}

/**
 * False if the means of the continued model's ratings are not known. Means of only the new ratings would be
 * biased.
 */
export function hasMeans({ start, startMeans }: SgdTraining): boolean {
  return start === undefined || startMeans !== undefined;
}
