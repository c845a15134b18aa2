/**
 * The tasks of SGD beside those of tasks.ts: part of the same contract between the operators and the devices.
 *
 * One side of R is called the rows and the other the columns; which of them is the users is the plan's choice. Ids are
 * relabelled at random before anything is sorted, so that bands of adjacent rows and columns are like any others.
 *
 * Further partition layouts
 *
 *   rating-list    ratings in the order in which they are visited: `rows`, `columns` Uint32[k], `values` Float32[k].
 *   batch-order    `order` Uint32[b]: a permutation of the batches of a rating-list, each of so many ratings but the last.
 *   features       with biases a row of factors is [β, 1, x..] and a column [1, γ, θ..]: their product is β + γ + xᵀθ.
 */
import type { Task } from '../engine/task.ts';

/**
 * One step of SGD on each rating of a block (cuMF_SGD, section 2.2), with the old p in the step of q:
 *
 *     e = r - pᵀq;   p <- p + γ (e q - λ_p p);   q <- q + γ (e p - λ_q q)
 *
 * `block` of layout rating-block: its rows are the factor rows `rowStart`.., its indices are factor columns, and ratings are
 * visited row by row. Of layout rating-list: the batches order[from] .. order[to - 1] (input `order`) of `batch`
 * ratings are visited, each in its own order. Outputs `rows`, `columns`, matrices that are there already and are stepped in place: an epoch as a whole
 * makes one version of them from a copy of the one before, which is what makes running it again safe. Tasks that run at
 * once share no row and no column, or do so knowingly (Hogwild!).
 *
 * `biases`: see the layout features; the 1s stay, and λ holds for β and γ too. `adaptive`: AdaGrad as in libmf, with outputs
 * `rowSums`, `columnSums` (matrices of one column, there already): γ_p = γ / √(1 + G_p), then G_p grows by the mean square of
 * the step's gradient over the features.
 */
export type SgdBlockTask = Task<
  'sgd-block',
  {
    readonly rank: number;
    readonly biases: boolean;
    /** γ of this epoch. */
    readonly rate: number;
    readonly rowLambda: number;
    readonly columnLambda: number;
    readonly adaptive: boolean;
    readonly rowStart?: number;
    readonly from?: number;
    readonly to?: number;
    readonly batch?: number;
    /** On a GPU: threads that step one rating together, teams of them at work at once, and what factors are stored as while they are stepped. */
    readonly lanes?: number;
    readonly workers?: number;
    readonly precision?: 'f32' | 'f16';
  }
>;

/**
 * One epoch of such steps over all ratings of `block`, for devices whose many small memories each hold the factors of some
 * columns: columns are dealt to `tiles`, ratings after them, sorted by row; teams of `lanes` threads step a tile's ratings,
 * `threads` of them a tile. Every rating is stepped once, in batches whose order is drawn for (seed, epoch). Teams do not lock
 * (Hogwild!), so a step may overwrite another's. Inputs
 * `sourceRows`, `sourceColumns`, with AdaGrad `sourceRowSums`, `sourceColumnSums` too: the version that is stepped; outputs
 * `rows`, `columns`, `rowSums`, `columnSums`: what becomes of it. Sources that are the outputs are stepped in place, as by sgd-block. Features may be kept in float16 meanwhile (`precision`), and
 * a rating is kept as what it is above `level`, in float16: near their mean that rounds ratings by a few 10,000ths of their deviation.
 */
export type SgdTilesTask = Task<
  'sgd-tiles',
  Omit<SgdBlockTask['params'], 'rowStart' | 'from' | 'to' | 'batch' | 'lanes' | 'workers' | 'precision'> & {
    readonly tiles: number;
    readonly lanes: number;
    readonly threads: number;
    readonly precision: 'f32' | 'f16';
    readonly level: number;
    readonly seed: number;
    readonly epoch: number;
  }
>;

/**
 * One epoch of wavefront-update (cuMF_SGD, section 3.2.3) without locks. Worker t owns the rows rowStarts[t] .. rowStarts[t + 1] - 1;
 * columns are cut at `columnStarts`. Input `order` (layout wave-order): `order` Uint32[waves * workers], the band of columns that each
 * worker steps in each wave, another for each; 0xffffffff: none. A wave begins when the one before it has ended, and a worker
 * steps its block row by row, so the outcome depends on nothing but the inputs. Other inputs and outputs as of sgd-tiles.
 */
export type SgdWavesTask = Task<
  'sgd-waves',
  Omit<SgdBlockTask['params'], 'rowStart' | 'from' | 'to' | 'batch' | 'lanes' | 'workers' | 'precision'> & {
    readonly lanes: number;
    readonly precision: 'f32' | 'f16';
    readonly rowStarts: readonly number[];
    readonly columnStarts: readonly number[];
  }
>;

/**
 * Cuts the rows [from, to) of `block` (indices ascending inside a row) by columns: part c has the ratings whose column is in
 * [columnStarts[c], columnStarts[c + 1]), columns unchanged or, `local`, counted from columnStarts[c]. Outputs `part.0`, `part.1`, ...:
 * rating-blocks of to - from rows.
 */
export type CutBlockTask = Task<'cut-block', { readonly from: number; readonly to: number; readonly columnStarts: readonly number[]; readonly local?: boolean }>;

/**
 * Shuffling ratings in two steps that stay within the caches. Ratings are dealt in groups of as many as there are buckets,
 * one to each bucket, by a permutation of the group's own; then each bucket is shuffled by itself. With Nz = G buckets + r
 * ratings bucket b begins at b G + min(b, r); the last r ratings go to the buckets 0 .. r - 1.
 *
 * `deal-ratings`: the groups [from, to). Input `block`; output `list`, there already.
 * `shuffle-ratings`: the buckets [from, to). Output `list`, in place.
 */
export type DealRatingsTask = Task<'deal-ratings', { readonly from: number; readonly to: number; readonly buckets: number; readonly seed: number }>;
export type ShuffleRatingsTask = Task<'shuffle-ratings', { readonly from: number; readonly to: number; readonly buckets: number; readonly seed: number }>;

/** Copies the rows [from, to) of a matrix. Input `source`, output `target` of the same shape. */
export type CopyRowsTask = Task<'copy-rows', { readonly from: number; readonly to: number }>;
