import { DataError, UsageError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import { type RatingWeight, readWeight } from '../../als/implicit/rating-weight.ts';

/** The rule by which a model's users were solved from its items, for users who come later. */
export interface RowRule {
  readonly rank: number;
  readonly biases: boolean;
  readonly nonnegative: boolean;
  /** μ with biases, else 0. */
  readonly mean: number;
  readonly lambda: number;
  /** Factors are regularized by λ n^ν + o, biases by biasLambda n + d; o in the ratings' own unit. */
  readonly exponent: number;
  readonly offset: number;
  readonly damping: number;
  /** λ of biases: that of factors, but for models by SGD. */
  readonly biasLambda: number;
  /**
   * Of implicit data: a rating of weight w adds α |w| to its pair's weight, its target is base + α w, and ΘᵀΘ
   * counts `unobserved` times.
   */
  readonly implicit?: {
    readonly alpha: number;
    readonly base: number;
    readonly unobserved: number;
    readonly weight: RatingWeight;
  };
}

/** A λ of 0 leaves the normal equations of users with few ratings singular. */
const LEAST_LAMBDA = 0.001;

/**
 * The rule of a trained or loaded model. `metadata`: what it tells of its training. `meanBias` gives μ + β of
 * the average user, for models that do not tell μ. Throws UsageError for a model that tells no λ, such as one
 * of Spark, unless `regParam` is given.
 *
 */
export function rowRule(
  metadata: JsonObject,
  rank: number,
  meanBias: () => number,
  regParam: number | undefined,
): RowRule {
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
  const biases = params.biases === true;
  const implicit = params.implicitPrefs === true;
  const offset = number(params.regOffset, 0);
  const deviation = number(metadata.ratingDeviation, Number.NaN);
  if (offset > 0 && Number.isNaN(deviation))
    throw new DataError(
      'the model was trained with regOffset, and does not tell the deviation of its ratings',
      { phase: 'fold-in', advice: 'Train it again with this release' },
    );
  const damping = Array.isArray(params.biasDamping)
    ? number(params.biasDamping[0], 0)
    : number(params.biasDamping, 0);
  const weight = typeof params.unobservedWeight === 'number' ? params.unobservedWeight : undefined;
  const told = number(metadata.meanRating, Number.NaN);
  const bounded = Math.max(lambda, LEAST_LAMBDA);
  return {
    rank,
    biases,
    nonnegative: params.nonnegative === true,
    mean: !biases ? 0 : Number.isNaN(told) ? meanBias() : told,
    lambda: bounded,
    exponent: number(params.regExponent, 1),
    offset: offset > 0 ? offset * deviation : 0,
    damping,
    // SGD steps biases with the λ of its factors, on ratings of deviation 1; there the λ of factors is λ / σ.
    biasLambda: metadata.algorithm === 'sgd' && deviation > 0 ? bounded / deviation : bounded,
    ...(implicit
      ? {
          implicit: {
            alpha: number(params.alpha, 1),
            base: weight === undefined ? 1 : 0,
            unobserved: weight ?? 1,
            weight: readWeight(metadata.ratingWeight),
          },
        }
      : {}),
  };
}

/**
 * Numbers added to the diagonal for a user of n ratings (implicit: of n positive ones, among `items`): of
 * factors, and of the bias.
 */
export function shiftsOf(
  { lambda, exponent, offset, damping, biasLambda, implicit }: RowRule,
  n: number,
  items: number,
): { readonly factors: number; readonly bias: number } {
  const counted = implicit?.base === 0 ? n + implicit.unobserved * items : n;
  return { factors: lambda * counted ** exponent + offset, bias: biasLambda * n + damping };
}
