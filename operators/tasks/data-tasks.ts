/**
 * Tasks that prepare data. Together with tasks.ts they are the contract between operators and devices.
 *
 * Further partition layouts
 *
 *     row-bands   the band of each row (see dataTasks): `placeOf` Uint32[rows] has the band in the high bits
 *                 and the row's number within the band in the low `rowBits` bits; `firstRow` Int32[bands + 1]
 *     row-parts   the part of each row: `partOf` Uint16[rows], or Uint32 for more than 2^16 parts; `firstRow`
 *                 Int32[parts + 1]
 */
import { type Rows, type TaskTable, type } from './task-types.ts';

/**
 * The treatment of several ratings of one (user, item) pair. `keep` keeps all and orders them by value, so
 * that row order never matters.
 */
export type DuplicatePolicy = 'keep' | 'error' | 'last' | 'mean' | 'sum';

type FromPairs = { readonly by: 'users' | 'items'; readonly rowBits: number };
type Counting = { readonly bands: number; readonly rowBits: number };
/** Values: the number of ratings that were added to each part. */
type SplitRatings = { readonly ratings: readonly number[] };
/** Number of low bits of a sort key that contain the column. */
type Keyed = { readonly columnBits: number };

/**
 * Sorting ratings into compressed rows takes two steps that both stay within the processor's caches and page
 * tables. A *band* is a sequence of adjacent rows with some ten thousand ratings in total.
 *
 *   1. Ratings are scattered to their bands, in any order within a band, directly to the band's place in the
 *      block: the value among the values, and a *key* of 32 bits among the indices:
 *      (row - first row of the band) 2^columnBits + column.
 *   2. Each band is sorted in place by key, and its keys become columns.
 *
 * So sorting takes no memory in addition to the block. Both steps are cut into groups that write to separate
 * places, which are computed from counts before anything is written.
 */
export const dataTasks = {
  /**
   * Counts the ratings of each band, separately for each of some groups of chunks. `groups`: the number of
   * chunks in each group. Inputs: `bands`; for chunk i `codes.i` (ids as numbers) and, if these are numbers
   * within the chunk, `rowMap.i` (`map` Uint32: code -> position). `by`: users or items as the rows. Output:
   * `counts` (`counts` Int32[groups x bands]).
   */
  'count-pairs': {
    reads: ['bands', 'codes.*', 'rowMap.*'],
    writes: ['counts'],
    params: type<FromPairs & Counting & { readonly groups: readonly number[] }>(),
  },

  /**
   * Writes the ratings of one group of chunks to their bands. Inputs as for count-pairs, and `columnMap.i`,
   * `values.i` (Float32), `cursors` (`cursors` Int32[bands]: position for this group's first rating of each
   * band). Output, already allocated: `block`. With `firstRow`, the block gets the ratings' row numbers in
   * the source as values, counted from `firstRow`, and the ratings and timestamps themselves are written to
   * `rowData` (`ratings` Float32, `timestamps` Float64, by row number), also already allocated.
   */
  'scatter-pairs': {
    reads: ['bands', 'codes.*', 'rowMap.*', 'columnMap.*', 'values.*', 'cursors'],
    alone: ['block', 'rowData?'],
    params: type<FromPairs & Keyed & { readonly chunks: number; readonly firstRow?: number }>(),
  },

  /**
   * Like count-pairs and scatter-pairs, to transpose a block: these tasks read rows of `block`, and its
   * columns become the rows of `transposed`. count-columns counts for several groups of rows: group g has the
   * rows [starts[g], starts[g + 1]). scatter-columns writes the ratings of the rows [from, to), which are one
   * group.
   */
  'count-columns': {
    reads: ['bands', 'block'],
    writes: ['counts'],
    params: type<Counting & { readonly starts: readonly number[] }>(),
  },
  'scatter-columns': {
    reads: ['bands', 'block', 'cursors'],
    alone: ['transposed'],
    params: type<Rows & Keyed & { readonly rowBits: number }>(),
  },

  /**
   * Sorts each of the bands [from, to) in place. Input: `bands`. Output, already allocated and filled by the
   * scatter tasks: `block` with its offsets.
   *
   * `order`: 'kept' if the columns of each row ascend already (a transposition reads rows in order);
   * 'by-column' sorts them; 'by-value' also sorts the ratings of one row and column by value. Values, except
   * for 'kept': `extra` (number of ratings that repeat a pair), `row`, `column` of the first repeated pair
   * (-1 if there is none).
   */
  'sort-bands': {
    reads: ['bands'],
    alone: ['block'],
    params: type<Rows & Keyed & { readonly order: 'kept' | 'by-column' | 'by-value' }>(),
    values: type<{ extra: number; row: number; column: number }>(),
  },

  /**
   * Divides the ratings of some chunks among parts, which are ranges of rows; within a part, rows are
   * numbered from its first. Inputs: `parts` (layout row-parts), and for each chunk c `codes.c`, `values.c`,
   * and `rowMap.c`, `columnMap.c` if the codes are numbers within the chunk. Outputs for each part p:
   * `partCodes.p`, with row numbers (as `users`) and positions of columns, and `partValues.p`.
   */
  'split-pairs': {
    reads: ['parts', 'codes.*', 'rowMap.*', 'columnMap.*', 'values.*'],
    writes: ['partCodes.*', 'partValues.*'],
    params: type<{ readonly by: 'users' | 'items'; readonly chunks: number }>(),
    values: type<SplitRatings>(),
  },

  /**
   * Like split-pairs, for the rows [from, to) of a sorted block, whose row 0 has the position `firstRow`.
   * Here the parts are ranges of the block's columns, numbered from the first of each part.
   */
  'split-block': {
    reads: ['parts', 'block'],
    writes: ['partCodes.*', 'partValues.*'],
    params: type<Rows & { readonly firstRow: number }>(),
    values: type<SplitRatings>(),
  },

  /**
   * Finds repeated pairs: ratings of the same column in a row of a block whose indices ascend. Outputs:
   * `lengths` (`lengths` Int32[to - from]: the rows' lengths after merging duplicates), `repeated` (`columns`
   * Uint32: columns of the ratings that repeat a pair).
   */
  'find-duplicates': { reads: ['block'], writes: ['lengths', 'repeated'], params: type<Rows>() },

  /**
   * Writes the rows [from, to) with their duplicates combined by `policy`. Inputs: `block`; for `last`, whose
   * block has row numbers of the source as values, also `rowData` (`ratings` Float32, `timestamps` Float64,
   * by row number): the latest rating counts, the larger one if times are equal. Output: `combined`, already
   * allocated with its offsets.
   */
  'combine-duplicates': {
    reads: ['block', 'rowData?'],
    alone: ['combined'],
    params: type<Rows & { readonly policy: Exclude<DuplicatePolicy, 'error' | 'keep'> }>(),
  },

  /**
   * Sums the ratings of the rows [from, to) of a block in order, in float64. Output, already allocated:
   * `rowSums` (`sums` Float64[rows]), to which each row's sum is added. Values over all these ratings: `sum`;
   * `least` and `most` (infinite without ratings); `whole` (true if all are whole numbers); `count`, `mean`,
   * and `squares` = Σ (r - mean)².
   */
  'sum-ratings': {
    reads: ['block'],
    alone: ['rowSums'],
    params: type<Rows>(),
    values: type<{
      sum: number;
      least: number;
      most: number;
      whole: boolean;
      count: number;
      mean: number;
      squares: number;
    }>(),
  },

  /**
   * Damped means of the rows [from, to): the sum of a row's ratings, each minus `mean` and the column's mean,
   * divided by their number plus `damping`. Inputs: `block`, `columnMeans` (`values` Float32[columns]).
   * Output, already allocated: `rowMeans` (`values` Float32[rows]).
   */
  'damped-means': {
    reads: ['block', 'columnMeans'],
    writes: ['rowMeans'],
    params: type<Rows & { readonly mean: number; readonly damping: number }>(),
  },

  /**
   * Sums the ratings of each column in the rows [from, to), in float64, in order. With the input `rowMeans`
   * (`values` Float32[rows]), sums the ratings minus `mean` and the row's mean. Output: `sums` (`sums`
   * Float64[columns], `counts` Int32[columns]).
   */
  'sum-columns': {
    reads: ['block', 'rowMeans?'],
    writes: ['sums'],
    params: type<Rows & { readonly columns: number; readonly mean?: number }>(),
  },

  /**
   * Sums the ratings number `from` to `to` - 1 of a block, in order, in float64; or with `apart`, the squares
   * of their differences to it. Values: `sum`.
   */
  'sum-values': {
    reads: ['block'],
    params: type<Rows & { readonly apart?: number }>(),
    values: type<{ sum: number }>(),
  },

  /**
   * Scales the ratings of the rows [from, to): (r - center) / deviation, as float32. Output, in place:
   * `block`. Values: `squares` = Σ of their squares, in float64.
   */
  standardize: {
    alone: ['block'],
    params: type<Rows & { readonly center: number; readonly deviation: number }>(),
    values: type<{ squares: number }>(),
  },

  /**
   * Divides the ratings of the rows [from, to), whose columns ascend, among blocks of column ranges: `part.c`
   * gets the columns from columnStarts[c] to columnStarts[c + 1] - 1, with their own numbers or, with
   * `local`, numbered from the first of the range. Outputs, already allocated with their row offsets:
   * `part.0`, `part.1`, ...
   */
  'place-columns': {
    reads: ['block'],
    alone: ['part.*'],
    params: type<Rows & { readonly columnStarts: readonly number[]; readonly local: boolean }>(),
  },
} as const satisfies TaskTable;
