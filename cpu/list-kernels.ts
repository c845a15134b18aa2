/**
 * The kernels of cpu/assembly/top-n.ts and rank-listed.ts, where the layouts stand; part of `Kernels`, whose
 * contract they have.
 */
export interface ListKernels {
  /**
   * Packs rows and empties their lists. rowPanels: 4 * rank bytes a row, rows rounded up to 4; thresholds,
   * rowNorms: 4 bytes a row, likewise.
   */
  beginTopN(
    rowFactors: number,
    size: number,
    rank: number,
    rows: number,
    n: number,
    rowPanels: number,
    thresholds: number,
    rowNorms: number,
    scores: number,
    items: number,
  ): void;
  /**
   * Compares columns first .. first + columns - 1 with all rows' lists. mask: 0, or [columns / 8][rows]
   * bytes. bounds: 0, or Float32[columns / 8]. order: 0, or Uint32[columns]. work: 32 * rank + 128 bytes.
   */
  offerColumns(
    rowPanels: number,
    rows: number,
    columnFactors: number,
    size: number,
    rank: number,
    first: number,
    columns: number,
    mask: number,
    n: number,
    thresholds: number,
    rowNorms: number,
    bounds: number,
    order: number,
    scores: number,
    items: number,
    work: number,
  ): void;
  /** Orders the lists, best first. */
  finishTopN(rows: number, n: number, scores: number, items: number): void;
  /**
   * Writes a row, or zeros for address 0, to place `at` of the panels of countColumns, 4 * rank bytes a row,
   * and its norm; rows rounded up to 4.
   */
  packRow(row: number, rank: number, rowPanels: number, norms: number, at: number): void;
  /** The longest of each eight columns, times `room`. bounds: Float32[columns / 8]. */
  boundColumns(
    columnFactors: number,
    size: number,
    rank: number,
    columns: number,
    room: number,
    bounds: number,
  ): void;
  /**
   * Scores of `count` > 0 columns by their numbers. scores: room for a multiple of 8; work: 32 * rank bytes.
   */
  scoreListed(
    row: number,
    rank: number,
    columnFactors: number,
    size: number,
    columns: number,
    count: number,
    work: number,
    scores: number,
  ): void;
  /** Begin, enter and finish a row's list of n columns, see cpu/assembly/rank-listed.ts. */
  beginList(scores: number, columns: number, n: number): void;
  enterListed(
    scores: number,
    columns: number,
    n: number,
    newScores: number,
    newColumns: number,
    count: number,
  ): void;
  finishList(scores: number, columns: number, befores: number, counts: number, n: number): void;
  /**
   * Counts columns first .. first + columns - 1 before each listed column of all rows. lows: rows rounded up
   * to 4. work: 32 * rank + 128 bytes.
   */
  countColumns(
    rowPanels: number,
    rows: number,
    columnFactors: number,
    size: number,
    rank: number,
    first: number,
    columns: number,
    norms: number,
    bounds: number,
    lows: number,
    starts: number,
    ends: number,
    scores: number,
    befores: number,
    listed: number,
    counts: number,
    work: number,
  ): void;
  /** Takes `count` columns out of the counts of the listed columns start .. end - 1. */
  discountListed(
    newScores: number,
    newColumns: number,
    count: number,
    start: number,
    end: number,
    scores: number,
    listed: number,
    counts: number,
  ): void;
  /**
   * Ends the rows' lists before the columns that have `depth` columns before them; gives the number of rows
   * with columns left.
   */
  shortenLists(
    rows: number,
    starts: number,
    ends: number,
    lows: number,
    scores: number,
    counts: number,
    depth: number,
  ): number;
}
