/** The tasks that prepare data, beside those of tasks.ts: part of the same contract between the operators and the devices. */
import type { PartitionRef } from '../../engine/partition.ts';
import type { None, Numbered, Rows } from './tasks.ts';

/** A policy for several ratings of one (user, item) pair. `keep` orders them by value, so that row order never matters. */
export type DuplicatePolicy = 'keep' | 'error' | 'last' | 'mean' | 'sum';

/** Layout row-bands: `bandOf` Uint16[rows], `firstRow` Int32[bands + 1]. */
type FromPairs = { readonly chunks: number; readonly bands: number; readonly by: 'users' | 'items' };
type FromBlock = Rows & { readonly bands: number };

/**
 * Sorting ratings into compressed rows takes two steps that both stay within the processor's caches and page tables.
 * A *band* is a run of adjacent rows with some ten thousand ratings together.
 *
 *   1. Ratings are scattered to their bands, in any order within a band: column and value to where the band lies in the
 *      block, the row beside them in `rows` (layout row-numbers: `rows` Uint32[Nz]).
 *   2. Each band is sorted in its place, by column, then stably by row. Sorting a sorted band changes nothing.
 *
 * Both steps are cut into groups that fill places of their own, known from counts before anything is written.
 */
export interface DataTasks {
  /**
   * Counts the ratings of each band among the chunks of one group. Inputs: `bands`; of chunk i `codes.i` and, where codes
   * are the chunk's own, `rowMap.i` (`map` Uint32: code -> position). `by` says which code is the row. Output: `counts`
   * (`counts` Int32[bands]).
   */
  'count-pairs': { inputs: { bands: PartitionRef } & Numbered<'codes' | 'rowMap'>; outputs: { counts: PartitionRef }; params: FromPairs; values: None };

  /**
   * Scatters the chunks of one group to their bands. Inputs as for count-pairs, and `columnMap.i`, `values.i` (Float32, or
   * Uint32 to carry row numbers), `cursors` (`cursors` Int32[bands]: where this group's first rating of each band goes).
   * Outputs, there already: `block`, `rows`.
   */
  'scatter-pairs': {
    inputs: { bands: PartitionRef; cursors: PartitionRef } & Numbered<'codes' | 'rowMap' | 'columnMap' | 'values'>;
    outputs: { block: PartitionRef; rows: PartitionRef };
    params: FromPairs;
    values: None;
  };

  /** The same two for a transposition: from the rows [from, to) of `block`, whose columns become the rows of `transposed`. */
  'count-columns': { inputs: { bands: PartitionRef; block: PartitionRef }; outputs: { counts: PartitionRef }; params: FromBlock; values: None };
  'scatter-columns': { inputs: { bands: PartitionRef; block: PartitionRef; cursors: PartitionRef }; outputs: { transposed: PartitionRef; rows: PartitionRef }; params: FromBlock; values: None };

  /**
   * Sorts the bands [from, to). Input: `bands`. Outputs, there already and filled by the scattering tasks: `block` with its
   * offsets, `rows`. `ordered`: the columns of each row ascend already (a transposition reads rows in order). `columns`: their
   * number in all.
   */
  'sort-bands': { inputs: { bands: PartitionRef }; outputs: { block: PartitionRef; rows: PartitionRef }; params: Rows & { readonly columns: number; readonly ordered: boolean }; values: None };

  /**
   * Looks for ratings of the same column in a row of a block whose indices ascend. Output `lengths` (`lengths` Int32[to - from]:
   * the rows' lengths once duplicates are one). Values: `extra` (ratings beyond the first of their pair), `row`, `column` of
   * the first pair (-1 when there is none).
   */
  'find-duplicates': { inputs: { block: PartitionRef }; outputs: { lengths: PartitionRef }; params: Rows; values: { extra: number; row: number; column: number } };

  /**
   * Writes the rows [from, to) with their duplicates combined. Inputs: `block`; for `last`, whose block carries row numbers
   * as values, `rowData` (`ratings` Float32, `timestamps` Float64, by row number): the latest wins, ties by the larger
   * rating. Output: `combined`, there already with its offsets.
   */
  'combine-duplicates': {
    inputs: { block: PartitionRef; rowData?: PartitionRef };
    outputs: { combined: PartitionRef };
    params: Rows & { readonly policy: Exclude<DuplicatePolicy, 'error'> };
    values: None;
  };
}
