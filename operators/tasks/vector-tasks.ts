/**
 * Tasks of data-parallel ALS by conjugate gradients whose devices exchange vectors (cuMF, section 4.3 and
 * Algorithm 3, with cuMF_ALS, Algorithm 1). Devices with vertical parts of θ compute products of A over their
 * own ratings, either from the ratings without A or from the A that they formed of them once. The products
 * are summed, and each step is taken at the place of the rows.
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
 * used where the steps are taken.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { How } from '../../engine/run/step.ts';
import type { ImplicitWeights } from './implicit-tasks.ts';
import type { None, RowRegularization, Rows } from './task-types.ts';

/** First columns of the parts of a row of gradients; `s` exists only with biases. */
export interface GradientLayout {
  readonly r: 0;
  readonly n: number;
  readonly t: number;
  readonly along: number;
  readonly rho: number;
  readonly enough: number;
  readonly s: number;
}

/** Count of numbers between r and s. */
const SCALARS = 16;

export function gradientLayout(rank: number): GradientLayout {
  const n = Math.ceil(rank / 16) * 16;
  return { r: 0, n, t: n + 1, along: n + 2, rho: n + 3, enough: n + 4, s: n + SCALARS };
}

export function gradientColumns(rank: number, biases: boolean): number {
  const { n, s } = gradientLayout(rank);
  return biases ? s + n : s;
}

/** Parameters of the tasks that take steps; λ is not used if `gram` and `shifts` are given. */
type StepParams = Rows & RowRegularization & { readonly rank: number };

type Shifted = { readonly gram?: PartitionRef; readonly shifts?: PartitionRef };

export interface VectorTasks {
  /**
   * Adds r, n, t, along and s over the ratings of the rows [from, to) of a block to the gradients of these
   * rows, for the x of `previous`. Biases and `mean` as in `update`.
   */
  'add-residuals': {
    inputs: { block: PartitionRef; fixed: PartitionRef; previous: PartitionRef; fixedBias?: PartitionRef };
    outputs: { gradients: PartitionRef };
    params: Rows & { readonly rank: number; readonly mean?: number; readonly implicit?: ImplicitWeights };
    values: None;
  };

  /**
   * products_u += Σ (θ_vᵀd_u) θ_v over the ratings of the rows [from, to) of a block, each multiplied by its
   * w with the weights of implicit data.
   */
  'add-products': {
    inputs: { block: PartitionRef; fixed: PartitionRef; direction: PartitionRef };
    outputs: { products: PartitionRef };
    params: Rows & { readonly rank: number; readonly implicit?: ImplicitWeights };
    values: None;
  };

  /**
   * Adds b - A x, n, t, bᵀx and s of the rows [from, to) to the gradients of these rows, from their equations
   * (layout: equation-tasks.ts) and the x of `previous`: the sums of `add-residuals` over the same ratings.
   */
  'equation-residuals': {
    inputs: { equations: PartitionRef; previous: PartitionRef };
    outputs: { gradients: PartitionRef };
    params: Rows & { readonly rank: number };
    values: None;
  };

  /** products_u += A_u d_u for the rows [from, to), from their equations. */
  'equation-products': {
    inputs: { equations: PartitionRef; direction: PartitionRef };
    outputs: { products: PartitionRef };
    params: Rows & { readonly rank: number };
    values: None;
  };

  /**
   * Starts from the x of `previous` and sums over all ratings: they become residuals, which are the first
   * directions. A row's bias is eliminated as in `update`.
   */
  'begin-gradients': {
    inputs: { previous: PartitionRef } & Shifted;
    outputs: { gradients: PartitionRef; factors: PartitionRef; direction: PartitionRef };
    params: StepParams;
    values: None;
  };

  /**
   * One step along the directions, given their products over all ratings. A row whose steps have ended has
   * the direction 0.
   */
  'step-gradients': {
    inputs: { products: PartitionRef } & Shifted;
    outputs: { gradients: PartitionRef; factors: PartitionRef; direction: PartitionRef };
    params: StepParams;
    values: None;
  };

  /**
   * Ends the steps: rows with n_u = 0 become zero, and biases are computed from x. The directions are
   * overwritten. Values: `badRow` as of `update`.
   */
  'end-gradients': {
    inputs: { gradients: PartitionRef; direction: PartitionRef };
    outputs: { factors: PartitionRef; bias?: PartitionRef };
    params: StepParams;
    values: { badRow: number };
  };
}

export const vectorContracts = {
  'add-residuals': { block: 'read', fixed: 'read', previous: 'read', fixedBias: 'read', gradients: 'alone' },
  'add-products': { block: 'read', fixed: 'read', direction: 'read', products: 'alone' },
  'equation-residuals': { equations: 'read', previous: 'read', gradients: 'alone' },
  'equation-products': { equations: 'read', direction: 'read', products: 'alone' },
  'begin-gradients': {
    previous: 'read',
    gram: 'read',
    shifts: 'read',
    gradients: 'alone',
    factors: 'write',
    direction: 'write',
  },
  'step-gradients': {
    products: 'read',
    gram: 'read',
    shifts: 'read',
    gradients: 'alone',
    factors: 'alone',
    direction: 'alone',
  },
  'end-gradients': { gradients: 'read', direction: 'read', factors: 'alone', bias: 'write' },
} as const satisfies { readonly [K in keyof VectorTasks]: Readonly<Record<string, How>> };
