/**
 * Tasks of the rankings from item to item that evaluations compare models with. Together with tasks.ts they
 * are the contract between operators and devices. Only CPU devices have them.
 *
 * In EASE (Steck 2019, Embarrassingly shallow autoencoders for sparse data), G = XᵀX + λI for the binary
 * matrix X of users and items, P = G⁻¹, and the weight from item i to item j is -P_ij / P_jj. P is computed
 * in place by the sweep operator (Goodnight 1979, A tutorial on the sweep operator), a block of rows and
 * columns at a time; after all blocks the matrix is -P. Until then only its elements on and below the
 * diagonal count.
 */
import { type Rows, type TaskTable, type } from './task-types.ts';

/** A block of adjacent rows and columns of a square matrix: the first, and their number. */
export type SweptBlock = { readonly first: number; readonly count: number };

export const baselineTasks = {
  /**
   * For each item of [from, to) the `count` most similar other items by the cosine of their sets of users,
   * n_ij / (√(n_i n_j) + shrink). Ties are ordered by item. Inputs: `byUser` and its transpose `byItem`
   * (rating-block, without repeated pairs). Output: `similar` (layout similar-items: `items` Uint32[(to -
   * from) * count], `values` Float32 of the same length), where an item with fewer similar items ends in
   * 0xffffffff.
   */
  'similar-items': {
    reads: ['byUser', 'byItem'],
    writes: ['similar'],
    params: type<Rows & { readonly count: number; readonly shrink: number }>(),
  },

  /** Rows [from, to) of G, on and below the diagonal. Inputs as for `similar-items`. Output: `matrix`. */
  'count-pairs-of-items': {
    reads: ['byUser', 'byItem'],
    writes: ['matrix'],
    params: type<Rows & { readonly lambda: number }>(),
  },

  /**
   * Prepares the sweep of a block: copies the block's columns of all rows to `panels` (8 rows of the matrix
   * interleaved in each row of `panels`, so ⌈n / 8⌉ x 8 count), and the inverse of the block itself to
   * `inverse` (count x count).
   */
  'begin-sweep': { reads: ['matrix'], writes: ['panels', 'inverse'], params: type<SweptBlock>() },

  /** Sweeps the rows [from, to) of `matrix`, in place; `from` is a multiple of 8. */
  'sweep-rows': {
    reads: ['panels', 'inverse'],
    alone: ['matrix'],
    params: type<Rows & SweptBlock>(),
  },

  /** Copies the elements below the diagonal to the rows [from, to) above it, in place. */
  'mirror-rows': { alone: ['matrix'], params: type<Rows>() },

  /**
   * Ranks all items for the users [from, to) by the sum of weights from the items in their `history`. The
   * weights are a block with a row for each item (`weights`), or a swept matrix (`matrix`). Items of the
   * history are not ranked. Output: `ranked` (layout ranked-items):
   *
   *     scores   Float32, of each item that `listed` has for these users
   *     places   Uint32, two of each of these items: its rank and ties, as of `rank-listed`
   *     lists    Float64[ks * items]: for each k, the expected number of these users' lists of k items that
   *              have the item, where equal scores have no order; users without listed items have no list
   *     unlisted Float64[ks * items]: the probability that none of the lists has it
   */
  'rank-by-items': {
    reads: ['history', 'listed', 'weights?', 'matrix?'],
    writes: ['ranked'],
    params: type<Rows & { readonly items: number; readonly ks: readonly number[] }>(),
  },
} as const satisfies TaskTable;
