import type { RowPart, RowParts } from '../../engine/row-parts.ts';
import type { ModelRows } from '../training/model-rows.ts';
import type { TrainedFactors } from './bind/als-data.ts';
import { rowParts, type SortedRatings } from '../ratings/spilled-ratings.ts';

/** Σ (λ n_u + d) β_u² */
export function biasPenalty(ratings: SortedRatings, bias: Float32Array, lambda: number, damping: number): number {
  let sum = 0;
  for (const { from, rows, offsets } of rowParts(ratings)) {
    for (let row = 0; row < rows; row++) sum += (lambda * (offsets[row + 1] - offsets[row]) + damping) * bias[from + row] ** 2;
  }
  return sum;
}

/**
 * The sides of a model, biases as two more features, so that the product of the vectors is the prediction:
 *
 *     [x_u, β_u + μ, 1] · [θ_v, 1, γ_v]  =  x_uᵀθ_v + β_u + μ + γ_v
 *
 * `mean`: μ, undefined without biases. `unit`: that of the factors (see ratingUnit); the model is in the ratings' own.
 */
export function modelRows({ users, items }: TrainedFactors, rows: Readonly<Record<'users' | 'items', number>>, rank: number, mean: number | undefined, unit: number): ModelRows {
  const side = (name: 'users' | 'items', parts: readonly RowPart[]): RowParts => ({
    rows: rows[name],
    columns: rank + (mean === undefined ? 0 : 2),
    parts,
    ...(mean === undefined ? {} : { tail: name === 'users' ? { oneFirst: false, add: mean } : { oneFirst: true, add: 0 } }),
    ...(unit === 1 ? {} : { scale: { values: Math.sqrt(unit), own: unit } }),
  });
  return { users: side('users', users), items: side('items', items) };
}
