/**
 * The kernels of cpu/assembly/numbering, where the layouts stand; part of `Kernels`, whose contract they
 * have.
 */
export interface NumberingKernels {
  widenRange(ids: number, n: number, range: number): void;
  subtractLeast(ids: number, n: number, least: number): void;
  takeLowHalves(halves: number, n: number): 0 | 1;
  countCodes(codes: number, n: number, shift: number, counts: number, entries: number): void;
  addCounts(counts: number, more: number, n: number): void;
  countUsed(counts: number, n: number): number;
  rankCounts(
    counts: number,
    n: number,
    position: number,
    first: number,
    map: number,
    ids: number,
    own: number,
  ): number;
}
