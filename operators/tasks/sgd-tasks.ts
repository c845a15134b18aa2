/**
 * Tasks of SGD. Together with tasks.ts they are the contract between operators and devices.
 *
 * One side of R is called the rows and the other the columns; the plan chooses which of them is the users.
 * Ids are renumbered (relabelled) at random before anything is sorted, so that no range of adjacent rows or
 * columns (band) is special.
 *
 * Further partition layouts
 *
 *   rating-list    ratings in the order of visits: `rows`, `columns` Uint32[k], `values` Float32[k].
 *   batch-order    `order` Uint32[b]: a permutation of the batches of a rating-list; all but the last have the
 *                  same size.
 *   wave-order     `order` Uint32[waves * workers]: the band of columns for each worker in each wave; 0xffffffff: none.
 *   features       with biases a row of factors is [β, 1, x..] and a column [1, γ, θ..]: their product is β + γ + xᵀθ.
 */
import { type Rows, type TaskTable, type } from './task-types.ts';

/** Parameters of every kernel that takes a step of SGD for each rating. */
export type SgdStep = {
  readonly rank: number;
  readonly biases: boolean;
  /** The learning rate γ of this epoch. */
  readonly rate: number;
  readonly rowLambda: number;
  readonly columnLambda: number;
  readonly adaptive: boolean;
};

type Shuffling = Rows & { readonly buckets: number; readonly seed: number };

export const sgdTasks = {
  /**
   * One step of SGD for each rating r of a block, with the factors p of its row and q of its column
   * (cuMF_SGD, section 2.2). The step of q uses the old p:
   *
   *     e = r - pᵀq;   p <- p + γ (e q - λ_p p);   q <- q + γ (e p - λ_q q)
   *
   * If `block` has the layout rating-block: its rows are the factor rows from `rowStart` on, its indices are
   * factor columns, and ratings are visited row by row. If it has the layout rating-list: visits the batches
   * order[from] .. order[to - 1] (input `order`) of `batch` ratings, each in its own order. Outputs `rows`,
   * `columns`: existing matrices, stepped in place. A whole epoch makes one version of them from a copy of
   * the previous version, so it can be run again. Concurrent tasks share no row and no column, or accept
   * conflicts (Hogwild!).
   *
   * `biases`: see the layout features; the constant 1s do not change, and λ also applies to β and γ.
   * `adaptive`: AdaGrad as in libmf, with existing outputs `rowSums`, `columnSums` (matrices of one column):
   * γ_p = γ / √(1 + G_p), then G_p grows by the mean square of the step's gradient over the features.
   */
  'sgd-block': {
    reads: ['block', 'order?'],
    alone: ['rows', 'columns', 'rowSums?', 'columnSums?'],
    params: type<
      SgdStep & {
        readonly rowStart?: number;
        readonly from?: number;
        readonly to?: number;
        readonly batch?: number;
        /**
         * On a GPU: the number of threads that process one rating together (a team), the number of teams that
         * work at the same time, and the precision in which factors are stored during the epoch.
         */
        readonly lanes?: number;
        readonly workers?: number;
        readonly precision?: 'f32' | 'f16';
      }
    >(),
  },

  /**
   * One epoch of the steps of sgd-block over all ratings of `block`, for GPUs whose workgroups each have a
   * small memory. The columns are divided among `tiles`, whose factors each fit such a memory; a rating
   * belongs to the tile of its column, sorted by row. A tile has `threads` threads, of which teams of `lanes`
   * step one rating each. Every rating is stepped once, in batches whose order is drawn for (seed, epoch).
   * Teams do not lock (Hogwild!), so a step may overwrite another's.
   *
   * Inputs `sourceRows`, `sourceColumns`, with AdaGrad also `sourceRowSums`, `sourceColumnSums`: the version
   * to step. Outputs `rows`, `columns`, `rowSums`, `columnSums`: the new version. If sources are also the
   * outputs, they are stepped in place, as by sgd-block. Features may be stored in float16 meanwhile
   * (`precision`), and computed in it (`arithmetic`): sums of four products in float16 are added in float32.
   * A rating is stored in float16 as its difference to `level`, which rounds ratings near their mean by a few
   * 10,000ths of their deviation.
   */
  'sgd-tiles': {
    reads: ['block', 'sourceRows', 'sourceColumns', 'sourceRowSums?', 'sourceColumnSums?'],
    writes: ['rows', 'columns', 'rowSums?', 'columnSums?'],
    params: type<
      SgdStep & {
        readonly tiles: number;
        readonly lanes: number;
        readonly threads: number;
        readonly precision: 'f32' | 'f16';
        readonly arithmetic: 'f32' | 'f16';
        readonly level: number;
        readonly seed: number;
        readonly epoch: number;
      }
    >(),
  },

  /**
   * One epoch of wavefront-update (cuMF_SGD, section 3.2.3) without locks. Worker t owns the band of rows
   * rowStarts[t] .. rowStarts[t + 1] - 1; columns are cut into bands at `columnStarts`. Input `order` (layout
   * wave-order): the band of columns that each worker steps in each wave, different for all workers of a
   * wave. A wave starts after the previous one has ended, and a worker steps its block row by row, so the
   * result depends only on the inputs. Other inputs and outputs as of sgd-tiles.
   */
  'sgd-waves': {
    reads: ['block', 'order', 'sourceRows', 'sourceColumns', 'sourceRowSums?', 'sourceColumnSums?'],
    writes: ['rows', 'columns', 'rowSums?', 'columnSums?'],
    params: type<
      SgdStep & {
        readonly lanes: number;
        readonly precision: 'f32' | 'f16';
        readonly rowStarts: readonly number[];
        readonly columnStarts: readonly number[];
      }
    >(),
  },

  /**
   * Draws the order in which an epoch visits the batches of a rating-list, from (`seed`, `stream`), the
   * epoch, and `block` if each block has its own order. Output: `order` (layout batch-order).
   */
  'batch-order': {
    writes: ['order'],
    params: type<{
      readonly seed: number;
      readonly stream: number;
      readonly epoch: number;
      readonly batches: number;
      readonly block?: number;
    }>(),
  },

  /**
   * Draws the order of an epoch of sgd-waves, for a grid of `workers` x `columnBands` blocks. Output: `order`
   * (layout wave-order).
   */
  'wave-order': {
    writes: ['order'],
    params: type<{
      readonly seed: number;
      readonly epoch: number;
      readonly workers: number;
      readonly columnBands: number;
    }>(),
  },

  /**
   * Shuffles ratings in two steps whose memory accesses stay within the caches. First, each group of
   * `buckets` ratings is divided among the buckets, one to each, by a random permutation for the group. Then
   * each bucket is shuffled separately. With Nz = G buckets + r ratings, bucket b starts at b G + min(b, r);
   * the last r ratings go to the buckets 0 .. r - 1.
   *
   * `deal-ratings`: the groups [from, to). Input `block`; output `list`, already allocated.
   * `shuffle-ratings`: the buckets [from, to). Output `list`, in place.
   */
  'deal-ratings': { reads: ['block'], alone: ['list'], params: type<Shuffling>() },
  'shuffle-ratings': { alone: ['list'], params: type<Shuffling>() },

  /**
   * Applies the regularization that does not depend on a row's number of ratings: shrinks the rows [from, to)
   * of a matrix in place, for an epoch of rate γ. It minimizes o ‖x‖² + d β² plus the squared distance to the
   * row over 2 γ:
   *
   *     x <- x / (1 + γ o);   β <- β / (1 + γ d)
   *
   * Output `factors`. With biases `own` is the column of β and `one` the column of the constant 1, which does
   * not change (layout features). With AdaGrad the input `sums` makes γ specific to the row, `rate` / √(1 +
   * G).
   */
  'shrink-rows': {
    reads: ['sums?'],
    alone: ['factors'],
    params: type<
      Rows & {
        readonly rate: number;
        readonly offset: number;
        readonly damping: number;
        readonly own?: number;
        readonly one?: number;
        readonly adaptive: boolean;
      }
    >(),
  },

  /** Copies the rows [from, to) of a matrix. Input `source`, output `target` of the same shape. */
  'copy-rows': { reads: ['source'], writes: ['target'], params: type<Rows>() },
} as const satisfies TaskTable;
