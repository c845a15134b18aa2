import { tilesOf } from '../../device/slots.ts';
import { hasRatingRow } from '../../equations/tensor-plan.ts';

/**
 * The smallest bin (number of ratings loaded at a time). Every GPU with tensor cores has enough workgroup
 * memory for it.
 */
export const LEAST_BIN = 32;

/**
 * Bins (numbers of ratings loaded at a time) for the kernels on tensor cores, the best first. `sum`: for the
 * kernel that only computes A and b; `fused`: for the kernel that also solves. Larger bins hide more memory
 * latency, but need more registers, so that fewer workgroups run at the same time.
 *
 * Measured on an H200 at ranks 64 to 256 with data of Netflix's shape: above rank 64, bins of 64 shorten an
 * iteration by 3 to 16 % against bins of 32. Bins of 32 are better at ranks of 6 or 7 tiles of 16 features if
 * the padding of the last tile has room for the ratings (bench/results, `ranks` and `tensor-128`).
 */
export function tensorBins(rank: number): {
  readonly sum: readonly number[];
  readonly fused: readonly number[];
} {
  const tiles = tilesOf(rank);
  const small = [LEAST_BIN];
  const large = [64, LEAST_BIN];
  if (tiles <= 4) return { sum: small, fused: small };
  if (!hasRatingRow(rank) && tiles === 6) return { sum: large, fused: small };
  if (!hasRatingRow(rank) && tiles === 7) return { sum: small, fused: small };
  if (tiles === 8) return { sum: [48, LEAST_BIN], fused: large };
  if (tiles === 13) return { sum: [96, ...large], fused: [96, ...large] };
  return { sum: large, fused: large };
}
