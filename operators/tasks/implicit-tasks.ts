/**
 * Tasks of ALS for implicit data: a rating is evidence of preference, and every pair of user and item without
 * one counts as a weak zero (Hu, Koren and Volinsky 2008; cuMF_ALS, section V-F).
 *
 *     A_u x_u = b_u      A_u = G + Σ w θ_v θ_vᵀ + shift_u I,  b_u = Σ t θ_v      over the ratings r of u
 *     G = weight ΘᵀΘ over all v        w = α |r|        t = base + α r if r > 0, else 0
 *
 * Layout row-shifts: `values` Float32[rows], the regularization (shift_u) that is added to the diagonal of
 * each row's equations.
 */
import type { ValueWeight } from '../../engine/numbers/value-index.ts';
import {
  type Rows,
  type SolvedValues,
  type SolverChoice,
  type TaskTable,
  type,
  type VariantChoice,
} from './task-types.ts';

/** The weights of ratings. */
export type ImplicitWeights = {
  readonly alpha: number;
  /** The constant term of a positive rating's target t: 1 for Spark's weights, 0 for iALS. */
  readonly base: number;
};

export const implicitTasks = {
  /**
   * Computes the rows [from, to) of G and, by symmetry, the same columns. `from` and `to` are multiples of 8,
   * or the end of G. Output: `gram`, a matrix with at least `stride` rows.
   */
  gram: {
    reads: ['factors'],
    writes: ['gram'],
    params: type<Rows & { readonly rank: number; readonly weight: number }>(),
  },

  /**
   * Solves the rows [from, to) by the equations at the head of this file, with the solvers, outputs and
   * values of `update`, also its `prior`. Further inputs: `gram`, `shifts` (row-shifts). Rows without ratings
   * become zero. `anchors` (row-anchors), for new ratings of known rows: the prior a of a row whose anchor is
   * 1 has earlier ratings in it, so that G draws to it, too: (G + shift_u I) a is added to b. The objective is
   * then not complete. A GPU has no anchors.
   */
  'update-implicit': {
    reads: ['block', 'fixed', 'previous', 'gram', 'shifts', 'prior?', 'anchors?'],
    writes: ['factors'],
    params: type<
      SolverChoice &
        Rows &
        ImplicitWeights &
        VariantChoice & {
          readonly rank: number;
          /** See `update`. */
          readonly measured?: boolean;
        }
    >(),
    values: type<SolvedValues>(),
  },

  /**
   * The loss of the observed pairs that the Gram matrices do not contain: Σ w (p - s)² + base p (1 - 2 s)
   * over the ratings r of the rows [from, to), with s = x_uᵀθ_v, and p = 1 if r > 0, else 0. Values: `sum`,
   * in float64 in row order.
   */
  'implicit-error': {
    reads: ['block', 'rowFactors', 'columnFactors'],
    params: type<Rows & ImplicitWeights & { readonly rank: number }>(),
    values: type<{ sum: number }>(),
  },

  /**
   * Counts the ratings of the rows [from, to) by sign. Output, already allocated: `positive` (`counts`
   * Int32[rows]), to which each row's number of ratings above 0 is added. Values: number of ratings below 0
   * and equal to 0, and the `sum` of those above 0, in float64 in order.
   */
  'count-positive': {
    reads: ['block'],
    alone: ['positive'],
    params: type<Rows>(),
    values: type<{ readonly negative: number; readonly zero: number; readonly sum: number }>(),
  },

  /**
   * Counts the distinct ratings of the rows [from, to), compared by their bits. Values: `distinct`, each
   * rating with the number of its occurrences; null if there are more than ValueCounts holds.
   */
  'count-values': {
    reads: ['block'],
    params: type<Rows>(),
    values: type<{ readonly distinct: readonly (readonly [value: number, count: number])[] | null }>(),
  },

  /**
   * Sums, for each of the rows [from, to), the sizes of the weights of its ratings, or for `weight` null the
   * logarithms of |r|. Inputs: `block`, `itemCounts` (`counts` Int32: number of ratings of the item of each
   * column). Output, already allocated: `rowSums` (`sums` Float64[rows]), to which the sums are added.
   * Values: smallest and largest |r|.
   */
  'sum-weights': {
    reads: ['block', 'itemCounts'],
    alone: ['rowSums'],
    params: type<Rows & { readonly weight: ValueWeight | null }>(),
    values: type<{ readonly least: number; readonly most: number }>(),
  },

  /**
   * Weights of the ratings of the rows [from, to). Inputs: `block`, `itemCounts` (`counts` Int32: number of
   * ratings of the item of each column, or with `rows` 'items' of each row). Output, already allocated:
   * `weights` (`values` Float32, one for each rating), which may be the memory of the ratings.
   */
  'weigh-ratings': {
    reads: ['block', 'itemCounts'],
    alone: ['weights'],
    params: type<Rows & ValueWeight & { readonly rows: 'users' | 'items' }>(),
  },
} as const satisfies TaskTable;
