/**
 * Tasks that answer requests for single rows. Together with tasks.ts they are the contract between operators
 * and devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { implicitTasks } from './implicit-tasks.ts';
import { type TasksOf, type UpdateParams, type TaskTable, type } from './task-types.ts';

/**
 * An index for searching the vectors θ_v with the highest product with a query, as matrices of a CPU device.
 * Columns are vectors, sorted by descending distance from their mean θ̄.
 */
export type SearchIndex = {
  /** θ_v in float32: columns x rank. */
  readonly exact: PartitionRef;
  /**
   * θ_v - θ̄ with 8 bits per number, four numbers in one 32-bit element: columns x rank / 4, rows padded to
   * 16 bytes.
   */
  readonly coarse: PartitionRef;
  /**
   * Five rows with one number for each column: length, remainder, scale (defined in cpu/assembly/search.ts),
   * item, and the column of each item.
   */
  readonly guide: PartitionRef;
  /**
   * Three rows of `rank` numbers: θ̄; 1 for features that are not the same in all columns, else 0; and a row
   * whose first number is the largest ‖θ_v‖.
   */
  readonly center: PartitionRef;
};

const index = ['exact', 'coarse', 'guide', 'center'] as const satisfies readonly (keyof SearchIndex)[];

export const searchTasks = {
  /**
   * Fills a search index, whose memory is already allocated. Input: `vectors` (layout vectors: `values`
   * Float32[columns * width]), of which the first `rank` numbers are searched. `normalized`: vectors are
   * divided by their length; zeros stay zeros.
   */
  'prepare-search': {
    reads: ['vectors'],
    writes: index,
    params: type<{ readonly width: number; readonly rank: number; readonly normalized: boolean }>(),
  },

  /**
   * For each of `searches` the n items with the highest xᵀθ_v for its query x, best first, equal scores by
   * lower item; the same bits as the results of `top-n`. `left`: items to leave out, ascending; `allowed`:
   * the only items to search. The input `mask` (layout item-mask: `values` Uint8 by item) has a 1 for each
   * item that may be found by any of them. Values: `items`, `scores`; fewer than n if fewer items are
   * searched.
   */
  search: {
    reads: [...index, 'mask?'],
    params: type<{ readonly searches: readonly (Searched & { readonly query: readonly number[] })[] }>(),
    values: type<{ readonly found: readonly FoundItems[] }>(),
  },

  /**
   * Like `search`, for a row that is solved first: `update` or `update-implicit` computes its x from
   * `values`, its ratings of the items `rated`, ascending. With a mean, items are [θ_v, 1, γ_v], and the
   * query is [x, β + μ, 1]. For implicit data: the further input `gram`, and `shift`, the row's number in
   * row-shifts. `prior`: the factors and bias (without μ) to which the row is drawn; default zeros. `rows`:
   * workspace, a matrix with a row for each of `rated` and three more. `solved` is false if x is not finite.
   */
  'search-for-row': {
    reads: [...index, 'mask?', 'gram?'],
    writes: ['rows'],
    params: type<
      Searched & {
        readonly rated: readonly number[];
        readonly values: readonly number[];
        readonly solving: RowSolving;
        readonly shift: number;
        readonly prior?: { readonly factors: readonly number[]; readonly bias: number };
      }
    >(),
    values: type<FoundItems & { readonly solved: boolean }>(),
  },
} as const satisfies TaskTable;

type Searched = {
  readonly n: number;
  readonly left: readonly number[];
  readonly allowed?: readonly number[];
};

type FoundItems = { readonly items: readonly number[]; readonly scores: readonly number[] };

/** The task that solves a row, without its inputs. */
export type RowSolving =
  | { readonly kernel: 'update'; readonly params: Omit<UpdateParams, 'from' | 'to'> }
  | {
      readonly kernel: 'update-implicit';
      readonly params: Omit<TasksOf<typeof implicitTasks>['update-implicit']['params'], 'from' | 'to'>;
    };
