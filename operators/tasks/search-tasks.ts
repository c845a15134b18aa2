/**
 * The tasks that answer requests of one row at a time, beside those of tasks.ts: part of the same contract
 * between the operators and the devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { None } from './tasks.ts';

/**
 * A searchable form of some vectors θ_v, as matrices of a CPU device. Columns lie by falling distance from
 * their mean.
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
   * Three rows of `rank` numbers: θ̄, then 1 for features in which columns differ and 0 for the others, then
   * the largest ‖θ_v‖ in front.
   */
  readonly center: PartitionRef;
};

export interface SearchTasks {
  /**
   * Makes a searchable form of vectors, whose memory is there already. Input: `vectors` (layout vectors:
   * `values` Float32[columns * width]); their first `rank` numbers are searched. `normalized`: divided by
   * their length; zeros stay.
   *
   */
  'prepare-search': {
    inputs: { vectors: PartitionRef };
    outputs: SearchIndex;
    params: { readonly width: number; readonly rank: number; readonly normalized: boolean };
    values: None;
  };

  /**
   * The n items of highest xᵀθ_v for the query x, best first, ties by lower item; as `top-n` finds them, in
   * every bit. `left`: items that are left out, ascending; `allowed`: the only ones that are searched.
   * Values: `items`, `scores`, as many as there are.
   *
   */
  search: {
    inputs: SearchIndex;
    outputs: None;
    params: {
      readonly query: readonly number[];
      readonly n: number;
      readonly left: readonly number[];
      readonly allowed?: readonly number[];
    };
    values: { readonly items: readonly number[]; readonly scores: readonly number[] };
  };
}
