/**
 * Tasks of attributes: F, a rating-block of rows x features (see AttributeMatrix of
 * operators/attributes/attribute-matrix.ts), whose coefficients A (layout factors, features x f) predict the
 * factors of rows as F A.
 */
import { type RowRegularization, type Rows, type TaskTable, type } from './task-types.ts';

/** Columns of the matrix `work` of `fit-coefficients` for factors of `rank` columns. */
export function workColumns(rank: number): number {
  return 25 * Math.ceil(rank / 8);
}

export const attributeTasks = {
  /**
   * Fits the columns [from, to) of A, `from` a multiple of 8, to the rows' factors X by at most `steps` steps of
   * conjugate gradients, starting at `previous`: (FᵀD F + μ I) A = FᵀD X with μ = `ridge` and D, the rows'
   * shifts: `shifts` (row-shifts), or λ n^ν + o of a row with n ratings in `block`. With `bias` in place of
   * `factors` it is the rows' biases that are fitted, by A of one column, and D is λ n + d. `work`: a matrix of
   * features x workColumns(rank) numbers, whose contents are not used. Values: the most `steps` of a column.
   */
  'fit-coefficients': {
    reads: ['attributes', 'block?', 'shifts?', 'factors?', 'bias?', 'previous'],
    writes: ['coefficients'],
    alone: ['work'],
    params: type<
      Rows & RowRegularization & { readonly rank: number; readonly ridge: number; readonly steps: number }
    >(),
    values: type<{ readonly steps: number }>(),
  },

  /**
   * Predicts the rows [from, to) from their attributes. Output: `product` = F A, a matrix, or for A of one
   * column a vector (layout bias). Its row 0 is row `first` of F (default 0).
   */
  'multiply-attributes': {
    reads: ['attributes', 'coefficients'],
    writes: ['product'],
    params: type<Rows & { readonly rank: number; readonly first?: number }>(),
  },
} as const satisfies TaskTable;
