/**
 * Layout of normal equations in memory, between the kernel that sums them and the one that solves them.
 *
 * A *slot* holds A and b of one row, or of a part of a long one: the lower triangle of A as tiles of 16 x 16
 * float32, row by row, tile (i, j <= i) at i (i + 1) / 2 + j, each tile row-major and the diagonal ones full;
 * then b, float32[F]. F is the rank padded to whole tiles; elements beyond the rank are undefined, and
 * solvers do not read them. A has no λ: the solver adds λ n_u once for all slots of a row (cuMF, section
 * 4.3). With biases s = Σ θ_v, float32[F], and t = Σ r_uv, one of four, follow.
 *
 */
export const TILE = 16;

export function tilesOf(rank: number): number {
  return Math.ceil(rank / TILE);
}

/** F: the rank in whole tiles. */
export function paddedRank(rank: number): number {
  return tilesOf(rank) * TILE;
}

/** Float32 elements of a slot's A. */
export function matrixElements(rank: number): number {
  const tiles = tilesOf(rank);
  return ((tiles * (tiles + 1)) / 2) * TILE * TILE;
}

/** Float32 elements of a slot. */
export function slotElements(rank: number, biases: boolean): number {
  return matrixElements(rank) + paddedRank(rank) + (biases ? paddedRank(rank) + 4 : 0);
}
