import { tilesOf } from './layout.ts';
import { hasRatingRow } from './tensor-plan.ts';

/** Ratings whose rows of θ are gathered at a time, at least: what every GPU with tensor cores has the memory for. */
export const LEAST_BIN = 32;

/**
 * Ratings that the kernels on tensor cores gather at a time, the best first: for the kernel that sums, and for the one that solves
 * where it sums. Larger bins hide more of the time that memory takes, until there are fewer workgroups for them. Measured on an
 * H200 at ranks 64 to 256, Netflix's shape (bench/RESULTS.md): 64 takes 3 to 16 % off an iteration beyond rank 64, where the
 * ratings have a tile row of their own; where they have not, 32 is better at 7 tiles and 96 at 13.
 */
export function tensorBins(rank: number): { readonly sum: readonly number[]; readonly fused: readonly number[] } {
  const tiles = tilesOf(rank);
  const small = [LEAST_BIN];
  if (tiles <= 4 || (tiles <= 8 && !hasRatingRow(rank))) return { sum: small, fused: small };
  const large = [64, LEAST_BIN];
  if (tiles === 8) return { sum: [48, LEAST_BIN], fused: large };
  if (tiles === 13) return { sum: [96, ...large], fused: [96, ...large] };
  return { sum: large, fused: large };
}
