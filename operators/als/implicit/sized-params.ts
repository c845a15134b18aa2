import { explicitLambda } from '../../params/common.ts';
import type { AlsParams } from '../als-params.ts';
import type { WeightForm } from '../../../engine/numbers/value-weight.ts';

/**
 * ALS parameters in which every `auto` that depends on the sizes of the data is replaced by a value: λ, and
 * for implicit data α and the formula for weights.
 */
export interface SizedAlsParams extends AlsParams {
  readonly regParam: number;
}

/** The form of weights; `auto` means `log`. */
export function knownForm({ weight }: Pick<AlsParams, 'weight'>): WeightForm {
  return weight === 'auto' ? 'log' : weight;
}

/** m, n and Nz. */
export interface RatingSizes {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/**
 * Defaults for implicit data: α = (m n / Nz)^DENSITY, at most MOST, for m users, n items and Nz ratings; and
 * λ = SHARE α. Chosen over 18 data sets: docs/measured/quality.md, Implicit data.
 */
const DENSITY = 0.6;
const MOST = 100;
const SHARE = 0.3;

/** Replaces the parameters that are `auto` by values for ratings of these sizes. */
export function sizedParams(params: AlsParams, { users, items, ratings }: RatingSizes): SizedAlsParams {
  const { implicitPrefs, biases, regParam } = params;
  if (!implicitPrefs) return { ...params, regParam: regParam === 'auto' ? explicitLambda(biases) : regParam };
  const byDensity = () => rounded(Math.min(MOST, ((users * items) / Math.max(1, ratings)) ** DENSITY));
  const alpha = params.alpha === 'auto' ? byDensity() : params.alpha;
  return {
    ...params,
    weight: knownForm(params),
    alpha,
    regParam: regParam === 'auto' ? rounded(SHARE * alpha) : regParam,
  };
}

/** Three digits, so that plans and models show round numbers. */
function rounded(value: number): number {
  return Number(value.toPrecision(3));
}
