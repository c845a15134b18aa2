import { randomU32, uniform } from '../../engine/random.ts';

/**
 * Two independent standard normal numbers from two u32 (Box-Muller), written to out[at] and out[at + 1]:
 * sqrt(-2 ln u) (cos 2πv, sin 2πv). 32 bits limit |z| to 6.8.
 */
export function gaussianPair(u1: number, u2: number, out: Float32Array | Float64Array, at: number): void {
  const radius = Math.sqrt(-2 * Math.log(uniform(u1)));
  const angle = 2 * Math.PI * uniform(u2);
  out[at] = radius * Math.cos(angle);
  out[at + 1] = radius * Math.sin(angle);
}

/**
 * A row as the kernel drawRows makes it: `rank` normal numbers, scaled to the length `norm`, plus `shift`.
 * `low` and `high`: the row's key, already mixed with the seed. `absolute`: no number is negative before
 * `shift` is added.
 */
export function drawRow(
  low: number,
  high: number,
  rank: number,
  {
    norm = 1,
    shift = 0,
    absolute = false,
  }: { readonly norm?: number; readonly shift?: number; readonly absolute?: boolean } = {},
): Float64Array {
  const pairs = new Float64Array(rank + (rank & 1));
  for (let k = 0; k < rank; k += 2)
    gaussianPair(randomU32(low, high, k), randomU32(low, high, k + 1), pairs, k);
  const row = pairs.subarray(0, rank);
  const scale = norm / Math.sqrt(row.reduce((sum, x) => sum + x * x, 0));
  return row.map((x) => (absolute ? Math.abs(x) : x) * scale + shift);
}
