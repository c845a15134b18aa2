/**
 * The tasks that prepare data. Together with tasks.ts they are the contract between the operators and the
 * devices.
 */
import type { PartitionRef } from '../../engine/partition.ts';
import type { How } from '../../engine/run/step.ts';
import type { None, Numbered, Rows } from './task-types.ts';

/**
 * A policy for several ratings of one (user, item) pair. `keep` orders them by value, so that row order never
 * matters.
 */
export type DuplicatePolicy = 'keep' | 'error' | 'last' | 'mean' | 'sum';

/**
 * Layout row-bands: `placeOf` Uint32[rows], the band of a row above its number in the band, which has
 * `rowBits` bits, and `firstRow` Int32[bands + 1]. Layout row-parts: `partOf` Uint16[rows], or Uint32 for
 * more than 2^16 parts, and `firstRow` Int32[parts + 1].
 */
type FromPairs = { readonly by: 'users' | 'items'; readonly rowBits: number };
type Counting = { readonly bands: number; readonly rowBits: number };
/** Ratings of each part. */
type SplitRatings = { readonly ratings: readonly number[] };
/** Bits of a key that hold the column. */
type Keyed = { readonly columnBits: number };

/**
 * Sorting ratings into compressed rows takes two steps that both stay within the processor's caches and page
 * tables. A *band* is a run of adjacent rows with some ten thousand ratings in total.
 *
 *   1. Ratings are scattered to their bands, in any order within a band, directly to the band's place in the block: the value among
 *      the values, and a *key* of 32 bits among the indices: (row - first row of the band) 2^columnBits + column.
 *   2. Each band is sorted in place by key, and its keys become columns.
 *
 * So sorting takes no memory in addition to the block. Both steps are cut into groups that fill separate
 * places, known from counts before anything is written.
 */
export interface DataTasks {
  /**
   * Counts the ratings of each band among the chunks of some groups, which have `groups` chunks each. Inputs:
   * `bands`; of chunk i `codes.i` and, where codes are the chunk's own, `rowMap.i` (`map` Uint32: code ->
   * position). `by` says which code is the row. Output: `counts` (`counts` Int32[groups x bands]).
   */
  'count-pairs': {
    inputs: { bands: PartitionRef } & Numbered<'codes' | 'rowMap'>;
    outputs: { counts: PartitionRef };
    params: FromPairs & Counting & { readonly groups: readonly number[] };
    values: None;
  };

  /**
   * Scatters the chunks of one group to their bands. Inputs as for count-pairs, and `columnMap.i`, `values.i`
   * (Float32), `cursors` (`cursors` Int32[bands]: where this group's first rating of each band goes). Output,
   * there already: `block`. With `firstRow` the block's values are the ratings' row numbers, counted from it,
   * and ratings and timestamps go to `rowData` (`ratings` Float32, `timestamps` Float64, by row number),
   * there already.
   */
  'scatter-pairs': {
    inputs: { bands: PartitionRef; cursors: PartitionRef } & Numbered<
      'codes' | 'rowMap' | 'columnMap' | 'values'
    >;
    outputs: { block: PartitionRef; rowData?: PartitionRef };
    params: FromPairs & Keyed & { readonly chunks: number; readonly firstRow?: number };
    values: None;
  };

  /**
   * The same two steps for a transposition: from rows of `block`, whose columns become the rows of
   * `transposed`. Group g has the rows [starts[g], starts[g + 1]); the scattered group has [from, to).
   */
  'count-columns': {
    inputs: { bands: PartitionRef; block: PartitionRef };
    outputs: { counts: PartitionRef };
    params: Counting & { readonly starts: readonly number[] };
    values: None;
  };
  'scatter-columns': {
    inputs: { bands: PartitionRef; block: PartitionRef; cursors: PartitionRef };
    outputs: { transposed: PartitionRef };
    params: Rows & Keyed & { readonly rowBits: number };
    values: None;
  };

  /**
   * Sorts the bands [from, to). Input: `bands`. Output, already allocated and filled by the scattering tasks:
   * `block` with its offsets.
   *
   * `order`: 'kept' where the columns of each row ascend already (a transposition reads rows in order);
   * 'by-column' sorts them; 'by-value' also sorts the ratings of one row and column by value. Values, except
   * for 'kept': `extra` (ratings beyond the first of their pair), `row`, `column` of the first such pair (-1
   * when there is none).
   */
  'sort-bands': {
    inputs: { bands: PartitionRef };
    outputs: { block: PartitionRef };
    params: Rows & Keyed & { readonly order: 'kept' | 'by-column' | 'by-value' };
    values: { extra: number; row: number; column: number };
  };

  /**
   * Cuts the ratings of `chunks` chunks by parts, which are runs of rows; within a part rows are counted from
   * its first. Inputs: `parts` (layout row-parts), and of each chunk c `codes.c`, `values.c`, and `rowMap.c`,
   * `columnMap.c` where codes are the chunk's own. Outputs: `partCodes.p`, `partValues.p`, whose codes are
   * such rows (as `users`) and positions of columns.
   */
  'split-pairs': {
    inputs: { parts: PartitionRef } & Numbered<'codes' | 'rowMap' | 'columnMap' | 'values'>;
    outputs: Numbered<'partCodes' | 'partValues'>;
    params: { readonly by: 'users' | 'items'; readonly chunks: number };
    values: SplitRatings;
  };

  /**
   * The same of the rows [from, to) of a block whose row 0 has the position `firstRow`, by runs of its
   * columns, which are counted from the first of each part.
   */
  'split-block': {
    inputs: { parts: PartitionRef; block: PartitionRef };
    outputs: Numbered<'partCodes' | 'partValues'>;
    params: Rows & { readonly firstRow: number };
    values: SplitRatings;
  };

  /**
   * Finds ratings of the same column in a row of a block whose indices ascend. Outputs: `lengths` (`lengths`
   * Int32[to - from]: the rows' lengths once duplicates are merged), `repeated` (`columns` Uint32: columns of
   * the ratings beyond the first of their pair).
   */
  'find-duplicates': {
    inputs: { block: PartitionRef };
    outputs: { lengths: PartitionRef; repeated: PartitionRef };
    params: Rows;
    values: None;
  };

  /**
   * Writes the rows [from, to) with their duplicates combined. Inputs: `block`; for `last`, whose block
   * carries row numbers as values, `rowData` (`ratings` Float32, `timestamps` Float64, by row number): the
   * latest wins, ties by the larger rating. Output: `combined`, there already with its offsets.
   */
  'combine-duplicates': {
    inputs: { block: PartitionRef; rowData?: PartitionRef };
    outputs: { combined: PartitionRef };
    params: Rows & { readonly policy: Exclude<DuplicatePolicy, 'error' | 'keep'> };
    values: None;
  };

  /**
   * Sums the ratings of the rows [from, to) of a block in order, in float64. Output, already allocated:
   * `rowSums` (`sums` Float64[rows]), to which each row's sum is added. Values: `sum`, the `least` and the
   * `most` (infinite without ratings), `whole` (all are whole numbers), and of the `count` ratings their
   * `mean` and `squares` = Σ (r - mean)².
   */
  'sum-ratings': {
    inputs: { block: PartitionRef };
    outputs: { rowSums: PartitionRef };
    params: Rows;
    values: {
      sum: number;
      least: number;
      most: number;
      whole: boolean;
      count: number;
      mean: number;
      squares: number;
    };
  };

  /**
   * Damped means of the rows [from, to): what is left of their ratings less `mean` and the column's mean,
   * over their number and `damping`. Inputs: `block`, `columnMeans` (`values` Float32[columns]). Output,
   * there already: `rowMeans` (`values` Float32[rows]).
   */
  'damped-means': {
    inputs: { block: PartitionRef; columnMeans: PartitionRef };
    outputs: { rowMeans: PartitionRef };
    params: Rows & { readonly mean: number; readonly damping: number };
    values: None;
  };

  /**
   * Sums the ratings of each column in the rows [from, to), in float64 in their order; where the input
   * `rowMeans` (`values` Float32[rows]) is there, what `mean` and the row's leave of them. Output: `sums`
   * (`sums` Float64[columns], `counts` Int32[columns]).
   */
  'sum-columns': {
    inputs: { block: PartitionRef; rowMeans?: PartitionRef };
    outputs: { sums: PartitionRef };
    params: Rows & { readonly columns: number; readonly mean?: number };
    values: None;
  };

  /**
   * Sums the ratings numbered [from, to) in a block in their order, in float64, or the squares of their
   * differences to `apart`. Values: `sum`.
   */
  'sum-values': {
    inputs: { block: PartitionRef };
    outputs: None;
    params: Rows & { readonly apart?: number };
    values: { sum: number };
  };

  /**
   * Puts the ratings of the rows [from, to) on a scale: (r - center) / deviation, as float32. Output, in
   * place: `block`. Values: `squares` = Σ of their squares, in float64.
   */
  standardize: {
    inputs: None;
    outputs: { block: PartitionRef };
    params: Rows & { readonly center: number; readonly deviation: number };
    values: { squares: number };
  };

  /**
   * Copies the ratings of the rows [from, to), whose columns ascend, to blocks of runs of columns: `part.c`
   * has those from columnStarts[c] to columnStarts[c + 1], with their numbers or, `local`, counted from the
   * first. Outputs, there already with their row pointers: `part.0`, `part.1`, ...
   */
  'place-columns': {
    inputs: { block: PartitionRef };
    outputs: Numbered<'part'>;
    params: Rows & { readonly columnStarts: readonly number[]; readonly local: boolean };
    values: None;
  };
}

export const dataContracts = {
  'count-pairs': { bands: 'read', 'codes.*': 'read', 'rowMap.*': 'read', counts: 'write' },
  'scatter-pairs': {
    bands: 'read',
    'codes.*': 'read',
    'rowMap.*': 'read',
    'columnMap.*': 'read',
    'values.*': 'read',
    cursors: 'read',
    block: 'alone',
    rowData: 'alone',
  },
  'count-columns': { bands: 'read', block: 'read', counts: 'write' },
  'scatter-columns': { bands: 'read', block: 'read', cursors: 'read', transposed: 'alone' },
  'split-pairs': {
    parts: 'read',
    'codes.*': 'read',
    'rowMap.*': 'read',
    'columnMap.*': 'read',
    'values.*': 'read',
    'partCodes.*': 'write',
    'partValues.*': 'write',
  },
  'split-block': { parts: 'read', block: 'read', 'partCodes.*': 'write', 'partValues.*': 'write' },
  'sort-bands': { bands: 'read', block: 'alone' },
  'find-duplicates': { block: 'read', lengths: 'write', repeated: 'write' },
  'combine-duplicates': { block: 'read', rowData: 'read', combined: 'alone' },
  'sum-ratings': { block: 'read', rowSums: 'alone' },
  'damped-means': { block: 'read', columnMeans: 'read', rowMeans: 'write' },
  'sum-columns': { block: 'read', rowMeans: 'read', sums: 'write' },
  'sum-values': { block: 'read' },
  standardize: { block: 'alone' },
  'place-columns': { block: 'read', 'part.*': 'alone' },
} as const satisfies { readonly [K in keyof DataTasks]: Readonly<Record<string, How>> };
