/**
 * Tasks of ALS if the fixed side is in vertical parts on several devices and rows are solved by conjugate
 * gradients (cuMF, section 4.3 and Algorithm 3, with cuMF_ALS, Algorithm 1). In each step every device
 * multiplies the rows' directions by its share of A: directly by its ratings, or by the A that it formed from
 * its ratings once. The products of all devices are added, and the device that owns a row takes the row's
 * step.
 *
 * Layout of gradients: a matrix (layout factors) with a row for each solved row u, and `gradientColumns`
 * columns. F is f rounded up to a multiple of 16:
 *
 *     r          F numbers, of which f are used: Σ (r_uv - θ_vᵀx) θ_v of the ratings, then the residual b - A x
 *     n, t       n_u, and with biases Σ r_uv with μ and γ_v subtracted
 *     along      Σ r_uv θ_vᵀx
 *     ρ, ε       |r|², 0 once the steps have ended, and the ρ at which they end; then 11 unused numbers
 *     s          with biases: Σ θ_v, F numbers
 *
 * With the weights of implicit data r is Σ (t - w θ_vᵀx) θ_v (see implicit-tasks.ts); G and the shifts are
 * used by the tasks that take steps.
 */
import type { ImplicitWeights } from './implicit-tasks.ts';
import { type RowRegularization, type Rows, type TaskTable, type } from './task-types.ts';

/** For each of these fields of a row of gradients, its first column. `s` exists only with biases. */
export interface GradientLayout {
  readonly r: 0;
  readonly n: number;
  readonly t: number;
  readonly along: number;
  readonly rho: number;
  readonly enough: number;
  readonly s: number;
}

/** Number of columns between r and s. */
const SCALARS = 16;

export function gradientLayout(rank: number): GradientLayout {
  const n = Math.ceil(rank / 16) * 16;
  return { r: 0, n, t: n + 1, along: n + 2, rho: n + 3, enough: n + 4, s: n + SCALARS };
}

export function gradientColumns(rank: number, biases: boolean): number {
  const { n, s } = gradientLayout(rank);
  return biases ? s + n : s;
}

/**
 * Parameters of the tasks that take steps. For implicit data, whose inputs are `gram` and `shifts`, λ is not
 * used.
 */
type StepParams = Rows & RowRegularization & { readonly rank: number };

export const vectorTasks = {
  /**
   * Adds the sums r, n, t, along and s over the ratings of the rows [from, to) of a block to the gradients of
   * these rows. x is the row of `previous`. Biases and `mean` as in `update`.
   */
  'add-residuals': {
    reads: ['block', 'fixed', 'previous', 'fixedBias?'],
    alone: ['gradients'],
    params: type<
      Rows & { readonly rank: number; readonly mean?: number; readonly implicit?: ImplicitWeights }
    >(),
  },

  /**
   * Multiplies directions d by A without forming it: products_u += Σ (θ_vᵀd_u) θ_v over the ratings of the
   * rows [from, to) of a block. For implicit data each term is multiplied by the rating's weight w.
   */
  'add-products': {
    reads: ['block', 'fixed', 'direction'],
    alone: ['products'],
    params: type<Rows & { readonly rank: number; readonly implicit?: ImplicitWeights }>(),
  },

  /**
   * The same sums as `add-residuals` over the same ratings, but computed from the rows' equations (layout:
   * equation-tasks.ts): adds b - A x, n, t, bᵀx and s of the rows [from, to) to their gradients. x is the row
   * of `previous`.
   */
  'equation-residuals': {
    reads: ['equations', 'previous'],
    alone: ['gradients'],
    params: type<Rows & { readonly rank: number }>(),
  },

  /** Multiplies directions by formed equations: products_u += A_u d_u for the rows [from, to). */
  'equation-products': {
    reads: ['equations', 'direction'],
    alone: ['products'],
    params: type<Rows & { readonly rank: number }>(),
  },

  /**
   * Starts conjugate gradients at the x of `previous`, given the sums of `add-residuals` over all ratings.
   * They become the residuals b - A x, which are also the first directions. A row's bias is eliminated as in
   * `update`.
   */
  'begin-gradients': {
    reads: ['previous', 'gram?', 'shifts?'],
    writes: ['factors', 'direction'],
    alone: ['gradients'],
    params: type<StepParams>(),
  },

  /**
   * One step of conjugate gradients for every row, given the products of A and its direction, added over all
   * ratings. A row whose steps have ended gets the direction 0.
   */
  'step-gradients': {
    reads: ['products', 'gram?', 'shifts?'],
    alone: ['gradients', 'factors', 'direction'],
    params: type<StepParams>(),
  },

  /**
   * Ends conjugate gradients: rows without ratings become zero, and biases are computed from x. `direction`
   * is not read; a plan lists it so that it is freed after this task. Values: `badRow` as of `update`.
   */
  'end-gradients': {
    reads: ['gradients', 'direction'],
    writes: ['bias?'],
    alone: ['factors'],
    params: type<StepParams>(),
    values: type<{ badRow: number }>(),
  },
} as const satisfies TaskTable;
