import { DataError, UsageError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import { type RatingWeight, readWeight } from '../../als/implicit/rating-weight.ts';
import type { RowRule } from '../../als/rows/solve-rows.ts';

/** The rule by which a model's users were solved from its items, for users who come later. */
export interface UserRule extends RowRule {
  /** The form of implicit ratings' weights; undefined for explicit ones. */
  readonly weight?: RatingWeight;
}

/** A λ of 0 leaves the normal equations of users with few ratings singular. */
const LEAST_LAMBDA = 0.001;

/**
 * The rule of a trained or loaded model. `metadata`: what it tells of its training. `meanBias` gives μ + β of
 * the average user, for models that do not tell μ. Throws UsageError for a model that tells no λ, such as one
 * of Spark, unless `regParam` is given.
 *
 */
export function userRule(
  metadata: JsonObject,
  rank: number,
  meanBias: () => number,
  regParam: number | undefined,
): UserRule {
  const params = (metadata.params ?? {}) as JsonObject;
  const number = (value: Json | undefined, fallback: number) =>
    typeof value === 'number' ? value : fallback;
  const lambda = regParam ?? number(params.regParamUsers, number(params.regParam, Number.NaN));
  if (Number.isNaN(lambda))
    throw new UsageError('the model does not tell the λ that it was trained with', {
      advice: 'Give regParam',
    });
  if (!(lambda >= 0 && Number.isFinite(lambda)))
    throw new UsageError(`regParam (λ) must be a number of 0 or more, got ${lambda}`);
  const implicit = params.implicitPrefs === true;
  const offset = number(params.regOffset, 0);
  const deviation = number(metadata.ratingDeviation, Number.NaN);
  if (offset > 0 && Number.isNaN(deviation))
    throw new DataError(
      'the model was trained with regOffset, and does not tell the deviation of its ratings',
      { phase: 'fold-in', advice: 'Train it again with this release' },
    );
  const bounded = Math.max(lambda, LEAST_LAMBDA);
  const rule = {
    rank,
    nonnegative: params.nonnegative === true,
    lambda: bounded,
    exponent: number(params.regExponent, 1),
  };
  if (implicit) {
    const own = typeof params.unobservedWeight === 'number' ? params.unobservedWeight : undefined;
    const weights = { alpha: number(params.alpha, 1), base: own === undefined ? 1 : 0, unobserved: own ?? 1 };
    return { ...rule, implicit: weights, weight: readWeight(metadata.ratingWeight) };
  }
  const ofFactors = { ...rule, offset: offset > 0 ? offset * deviation : 0 };
  if (params.biases !== true) return ofFactors;
  const told = number(metadata.meanRating, Number.NaN);
  const [damping] = [params.biasDamping].flat();
  return {
    ...ofFactors,
    mean: Number.isNaN(told) ? meanBias() : told,
    damping: number(damping, 0),
    // SGD steps biases with the λ of its factors, on ratings of deviation 1; there the λ of factors is λ / σ.
    biasLambda: metadata.algorithm === 'sgd' && deviation > 0 ? bounded / deviation : bounded,
  };
}
