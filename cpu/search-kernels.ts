/**
 * The kernels of cpu/assembly/search.ts, where the layouts stand; part of `Kernels`, whose contract they
 * have.
 */
export interface SearchKernels {
  /** The best columns for one query, by bounds; gives the number of columns that it came to. */
  searchColumns(
    query: number,
    rank: number,
    coarseQuery: number,
    width: number,
    bound: number,
    exact: number,
    size: number,
    coarse: number,
    guide: number,
    stride: number,
    columns: number,
    left: number,
    leftCount: number,
    n: number,
    scores: number,
    items: number,
  ): number;
  /** The best of `count` named columns. chosen: Uint32[count]. */
  searchChosen(
    query: number,
    rank: number,
    exact: number,
    size: number,
    guide: number,
    stride: number,
    chosen: number,
    count: number,
    left: number,
    leftCount: number,
    n: number,
    scores: number,
    items: number,
  ): void;
}
