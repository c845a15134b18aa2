/**
 * The tasks that answer requests of one row at a time. Together with tasks.ts they are the contract between
 * the operators and the devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { ImplicitTasks } from './implicit-tasks.ts';
import type { None, UpdateParams } from './task-types.ts';

/**
 * A searchable form of some vectors θ_v, as matrices of a CPU device. Columns are sorted by falling distance
 * from their mean.
 */
export type SearchIndex = {
  /** θ_v in float32: columns x rank. */
  readonly exact: PartitionRef;
  /** θ_v - θ̄ in 8 bits, four to an element: columns x rank / 4, rows padded to 16 bytes. */
  readonly coarse: PartitionRef;
  /**
   * Five rows of a number for each column: length, remainder, scale (see cpu/assembly/search.ts), item, and
   * the column of each item.
   */
  readonly guide: PartitionRef;
  /**
   * Three rows of `rank` numbers: θ̄; 1 for features in which columns differ and 0 for the others; and the
   * largest ‖θ_v‖ first in the third.
   */
  readonly center: PartitionRef;
};

export interface SearchTasks {
  /**
   * Makes a searchable form of vectors, whose memory is there already. Input: `vectors` (layout vectors:
   * `values` Float32[columns * width]); their first `rank` numbers are searched. `normalized`: divided by
   * their length; zeros stay.
   */
  'prepare-search': {
    inputs: { vectors: PartitionRef };
    outputs: SearchIndex;
    params: { readonly width: number; readonly rank: number; readonly normalized: boolean };
    values: None;
  };

  /**
   * The n items with the highest xᵀθ_v for the query x, best first, ties by lower item; equal to the results
   * of `top-n` in every bit. `left`: items to leave out, ascending; `allowed`: the only items to search.
   * Values: `items`, `scores`, fewer than n if there are fewer.
   */
  search: {
    inputs: SearchIndex;
    outputs: None;
    params: Searched & { readonly query: readonly number[] };
    values: FoundItems;
  };

  /**
   * The same for the x of one row, which `update` or `update-implicit` solves from `values`, its ratings of
   * the items `rated`, ascending; with a mean items are [θ_v, 1, γ_v], and the query is [x, β + μ, 1].
   * Further input: `gram` for implicit rows, whose `shift` is that of row-shifts. `rows`: a matrix with a row
   * for each of `rated` and two more, all 0, in which the row is solved. `solved` is false where x is not
   * finite.
   */
  'search-for-row': {
    inputs: SearchIndex & { readonly gram?: PartitionRef };
    outputs: { rows: PartitionRef };
    params: Searched & {
      readonly rated: readonly number[];
      readonly values: readonly number[];
      readonly solving: RowSolving;
      readonly shift: number;
    };
    values: FoundItems & { readonly solved: boolean };
  };
}

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
      readonly params: Omit<ImplicitTasks['update-implicit']['params'], 'from' | 'to'>;
    };

const index = { exact: 'read', coarse: 'read', guide: 'read', center: 'read' } as const;

/** The use of every input and output of these tasks. */
export const searchContracts = {
  'prepare-search': { vectors: 'read', exact: 'write', coarse: 'write', guide: 'write', center: 'write' },
  search: index,
  'search-for-row': { ...index, gram: 'read', rows: 'write' },
} as const;
