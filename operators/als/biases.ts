import type { RowPart, RowParts } from '../../engine/row-parts.ts';
import type { SideNorms } from '../training/loss.ts';
import type { ModelRows } from '../training/model-rows.ts';
import type { TrainedFactors } from './bind/als-data.ts';

/** Σ (λ n_u + d) β_u² */
export function biasPenalty({ biasSum, biasPlain }: SideNorms, lambda: number, damping: number): number {
  return lambda * biasSum + damping * biasPlain;
}

/**
 * The factors as a model stores them. Biases become two more features, so that the product of two vectors is
 * the prediction:
 *
 *     [x_u, β_u + μ, 1] · [θ_v, 1, γ_v]  =  x_uᵀθ_v + β_u + μ + γ_v
 *
 * `mean`: μ, undefined without biases. `unit`: the number by which ratings were divided for training (see
 * ratingUnit); the model is in the unit of the ratings themselves.
 */
export function modelRows(
  { users, items }: TrainedFactors,
  rows: Readonly<Record<'users' | 'items', number>>,
  rank: number,
  mean: number | undefined,
  unit: number,
): ModelRows {
  const side = (name: 'users' | 'items', parts: readonly RowPart[]): RowParts => ({
    rows: rows[name],
    columns: rank + (mean === undefined ? 0 : 2),
    parts,
    ...(mean === undefined
      ? {}
      : { tail: name === 'users' ? { oneFirst: false, add: mean } : { oneFirst: true, add: 0 } }),
    ...(unit === 1 ? {} : { scale: { values: Math.sqrt(unit), own: unit } }),
  });
  return { users: side('users', users), items: side('items', items) };
}
