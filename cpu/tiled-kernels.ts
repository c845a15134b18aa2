/**
 * The kernels of cpu/assembly/solve/tiled/rows.ts, where the layout of a group of rows stands. Addresses and
 * sizes are those of Kernels; 0 stands for what rows do not have.
 */
export interface TiledKernels {
  placeRatings(
    indices: number,
    values: number,
    count: number,
    tileRows: number,
    tile: number,
    starts: number,
    step: number,
    at: number,
    locals: number,
    ratings: number,
  ): number;
  startTiledRow(size: number, shift: number, x: number, r: number, sums: number, state: number): void;
  passTiles(
    theta: number,
    size: number,
    thetaRows: number,
    tileRows: number,
    from: number,
    to: number,
    rows: number,
    starts: number,
    locals: number,
    ratings: number,
    pass: 0 | 1 | 2,
    brings: 0 | 1,
    p: number,
    y: number,
    sums: number,
    states: number,
    work: number,
  ): void;
  beginTiledRow(
    size: number,
    shift: number,
    sums: number,
    weight: number,
    total: number,
    x: number,
    r: number,
    p: number,
    q: number,
    state: number,
  ): void;
  stepTiledRow(
    size: number,
    shift: number,
    sums: number,
    weight: number,
    x: number,
    r: number,
    p: number,
    q: number,
    state: number,
  ): void;
  endTiledRow(
    size: number,
    shift: number,
    sums: number,
    weight: number,
    total: number,
    bias: number,
    x: number,
    p: number,
    state: number,
  ): 0 | 1;
}
