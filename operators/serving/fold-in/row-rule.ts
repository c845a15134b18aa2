import { DataError, UsageError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import type { ValueWeight } from '../../../engine/numbers/value-weight.ts';
import { readWeight } from '../../als/implicit/rating-weight.ts';
import type { RowRule } from '../../als/rows/solve-rows.ts';

/**
 * The regularization and weights with which training computed the users' factors from the item factors. Users
 * that are added to the model later are computed in the same way.
 */
export interface UserRule extends RowRule {
  /** Weights of implicit ratings; undefined for explicit ones. */
  readonly weight?: ValueWeight;
}

/**
 * The least λ, also if the model was trained with 0: the equations of users with few ratings would be
 * singular.
 */
const LEAST_LAMBDA = 0.001;

/**
 * The rule (see UserRule) of a trained or loaded model, from its metadata. `meanBias` returns μ + β of the
 * average user; it is used for models that do not store μ. Throws UsageError for a model without λ, such as
 * Spark's, unless `regParam` is given.
 */
export function userRule(
  metadata: JsonObject,
  rank: number,
  meanBias: () => number,
  regParam: number | undefined,
): UserRule {
  const params = (metadata.params ?? {}) as JsonObject;
  const lambda = Math.max(lambdaOf(params, regParam), LEAST_LAMBDA);
  const offset = offsetOf(params, metadata);
  const rule = {
    rank,
    nonnegative: params.nonnegative === true,
    lambda,
    exponent: numberOr(params.regExponent, 1),
  };
  if (params.implicitPrefs === true) {
    const alpha = numberOr(params.alpha, 1);
    const base = typeof params.unobservedWeight === 'number' ? 0 : 1;
    const implicit = { alpha, base, unobserved: numberOr(params.unobservedWeight, 1) };
    return { ...rule, implicit, weight: readWeight(metadata.ratingWeight) };
  }
  if (params.biases !== true) return { ...rule, offset };
  const deviation = deviationOf(metadata);
  const mean = numberOr(metadata.meanRating, Number.NaN);
  const [damping] = [params.biasDamping].flat();
  return {
    ...rule,
    offset,
    mean: Number.isNaN(mean) ? meanBias() : mean,
    damping: numberOr(damping, 0),
    // SGD scales ratings to standard deviation 1 and regularizes biases and factors by the same λ. In the
    // ratings' own scale, with standard deviation σ, that is λ for factors and λ / σ for biases.
    biasLambda: metadata.algorithm === 'sgd' && deviation > 0 ? lambda / deviation : lambda,
  };
}

/** The weight of pairs without a rating; undefined for explicit data. */
export function unobservedWeight({ params }: JsonObject): number | undefined {
  const own = (params ?? {}) as JsonObject;
  return own.implicitPrefs === true ? numberOr(own.unobservedWeight, 1) : undefined;
}

function numberOr(value: Json | undefined, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}

function deviationOf(metadata: JsonObject): number {
  return numberOr(metadata.ratingDeviation, Number.NaN);
}

function lambdaOf(params: JsonObject, given: number | undefined): number {
  const lambda = given ?? numberOr(params.regParamUsers, numberOr(params.regParam, Number.NaN));
  if (Number.isNaN(lambda))
    throw new UsageError('the model does not contain the λ of its training', {
      advice: 'Give regParam',
    });
  if (lambda >= 0 && Number.isFinite(lambda)) return lambda;
  throw new UsageError(`regParam (λ) must be a number of 0 or more, got ${lambda}`);
}

/** The offset o that is added to the diagonal of each user's equations, in the scale of the ratings. */
function offsetOf(params: JsonObject, metadata: JsonObject): number {
  const offset = numberOr(params.regOffset, 0);
  if (!(offset > 0)) return 0;
  const deviation = deviationOf(metadata);
  if (!Number.isNaN(deviation)) return offset * deviation;
  throw new DataError(
    'the model was trained with regOffset, but does not contain the deviation of its ratings',
    { phase: 'fold-in', advice: 'Train it again with this release' },
  );
}
