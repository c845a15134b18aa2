/**
 * Layout of normal equations in memory, between the kernel that sums them and the kernel that solves them.
 *
 * A *slot* holds A and b of one row, or of a part of a long row:
 *
 * | content | elements (float32) |
 * |---|---|
 * | A | lower triangle as tiles of 16 x 16, row-major; tile (i, j <= i) at i (i + 1) / 2 + j |
 * | b | F |
 * | s = Σ θ_v, with biases | F |
 * | t = Σ r_uv, with biases | 4, of which one is used |
 *
 * Diagonal tiles are full. F is the rank padded to whole tiles. Elements beyond the rank are undefined;
 * solvers do not read them. A has no λ: the solver adds λ n_u once for all slots of a row (cuMF, section
 * 4.3).
 */
export const TILE = 16;

/** Largest rank at which kernels form A. Above it, rows are solved by conjugate gradients without A. */
export const MOST_FORMED = 512;

export function tilesOf(rank: number): number {
  return Math.ceil(rank / TILE);
}

/** F: the rank rounded up to whole tiles. */
export function paddedRank(rank: number): number {
  return tilesOf(rank) * TILE;
}

/** Float32 elements of a slot's A. */
export function matrixElements(rank: number): number {
  const tiles = tilesOf(rank);
  return ((tiles * (tiles + 1)) / 2) * TILE * TILE;
}

export function slotElements(rank: number, biases: boolean): number {
  return matrixElements(rank) + paddedRank(rank) + (biases ? paddedRank(rank) + 4 : 0);
}
