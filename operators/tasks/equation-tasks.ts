/**
 * Tasks of ALS if the fixed side is in p > 1 vertical parts and rows are solved from sums of normal equations
 * (cuMF, section 4.3 and Algorithm 3). The ratings of each part are added to partial equations, partial
 * equations are added like matrices, and each row is solved from the sum.
 *
 * Layout of equations: a matrix (layout factors, allocated as zeros) with a row for each solved row u, and
 * `equationColumns` columns:
 *
 *     triangle   the lower triangle of A = Σ θ_v θ_vᵀ row by row: element (i, j <= i) at i (i + 1) / 2 + j
 *     b          Σ r_uv θ_v, f numbers
 *     n          n_u, the number of ratings of u
 *     s, t       with biases: Σ θ_v, f numbers, and Σ r_uv, with μ and γ_v subtracted from r_uv
 *
 * λ is added once, when the row is solved. With the weights of implicit data A is Σ w θ_v θ_vᵀ and b is Σ t
 * θ_v (see implicit-tasks.ts); G and the shifts are added when the row is solved.
 */
import type { ImplicitWeights } from './implicit-tasks.ts';
import {
  type RowRegularization,
  type Rows,
  type SolvedValues,
  type SolverChoice,
  type TaskTable,
  type,
  type VariantChoice,
} from './task-types.ts';

/** For each of these fields of a row of equations, its first column. `s` and `t` exist only with biases. */
export interface EquationLayout {
  readonly triangle: 0;
  readonly b: number;
  readonly n: number;
  readonly s: number;
  readonly t: number;
}

export function equationLayout(rank: number): EquationLayout {
  const b = (rank * (rank + 1)) / 2;
  return { triangle: 0, b, n: b + rank, s: b + rank + 1, t: b + 2 * rank + 1 };
}

/** Number of columns of a row of equations: f (f + 1) / 2 + f + 1, and f + 1 more with biases. */
export function equationColumns(rank: number, biases: boolean): number {
  const { s, t } = equationLayout(rank);
  return biases ? t + 1 : s;
}

export const equationTasks = {
  /**
   * Adds the ratings of the rows [from, to) of a block to the rows' equations. A column index of the block is
   * a row of `fixed`. Row 0 of `equations` belongs to the row `rowStart` (default 0) of the block. Biases and
   * `mean` as in `update`: the equations have s and t if `fixedBias` is given.
   */
  'normal-equations': {
    reads: ['block', 'fixed', 'fixedBias?'],
    alone: ['equations'],
    params: type<
      Rows &
        VariantChoice<'f32' | 'f16'> & {
          readonly rank: number;
          readonly rowStart?: number;
          readonly mean?: number;
          readonly implicit?: ImplicitWeights;
        }
    >(),
  },

  /**
   * Solves the rows [from, to) of `factors` from their equations as `update` does: by Cholesky, by CG on A,
   * or with x >= 0, and with biases if `bias` is given. If `gram` and `shifts` are given, it solves as
   * `update-implicit` does, and λ is not used. Row 0 of `equations` belongs to the row `rowStart` (default 0)
   * of the other matrices. Rows without ratings become zero. With `prior` and `priorBias` rows are drawn to these
   * as by `update`. Values as of `update`.
   */
  'solve-equations': {
    reads: ['equations', 'previous', 'gram?', 'shifts?', 'prior?', 'priorBias?'],
    writes: ['factors', 'bias?'],
    params: type<
      Rows &
        SolverChoice &
        RowRegularization &
        VariantChoice<'f32' | 'f16'> & {
          readonly rank: number;
          readonly rowStart?: number;
          readonly measured?: boolean;
        }
    >(),
    values: type<SolvedValues>(),
  },

  /** sum += addend in the rows [from, to) of two matrices of one shape. */
  'add-rows': { reads: ['addend'], alone: ['sum'], params: type<Rows>() },

  /**
   * Copies all rows of a part into a matrix with the rows of all parts, or a part's biases into the biases of
   * all parts. Row 0 of the part becomes row `rowFrom`. `rounded`: the rows are rounded to 8 bits before, as
   * they are for other devices (see Wire).
   */
  'place-rows': {
    reads: ['rows'],
    alone: ['whole'],
    params: type<{ readonly rowFrom: number; readonly rounded?: boolean }>(),
  },

  /**
   * Copies row i of `rows` to the row positions[i] of `whole`, which is allocated already, and skips rows
   * whose position is UNKNOWN_KEY. `positions`: layout row-positions, `positions` Uint32[rows]. For a CPU.
   */
  'scatter-rows': { reads: ['rows', 'positions'], alone: ['whole'] },
} as const satisfies TaskTable;
