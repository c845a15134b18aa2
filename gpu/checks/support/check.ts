import { fromHalf, toHalf } from '../../../engine/numbers/half.ts';
import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelParams } from '../../webgpu/kernel.ts';

/**
 * A comparison of one variant of a kernel with a float64 version on the CPU, on small data. It runs on any
 * GPU that supports the variant.
 */
export interface KernelCheck {
  /** The kernel's name. */
  readonly name: string;
  /** Distinguishes this check from others of the same kernel, for example "rank 100, biases". */
  readonly variant: string;
  /** True when the adapter supports the variant; absent when every adapter does. */
  admitted?(gpu: Gpu): boolean;
  /**
   * Returns the largest deviation from the CPU's result, in a measure that the check chooses. The check fails
   * if `error` is NaN or above `limit`.
   */
  run(gpu: Gpu): Promise<{ readonly error: number; readonly limit: number }>;
}

/** Ranks at which most kernels are checked: around the sizes of tiles, vectors and subgroups. */
export const CHECKED_RANKS = [1, 7, 10, 32, 63, 64, 100, 128, 200];

/**
 * The ranks at which kernels on tensor cores are checked. They include workgroups of five and six subgroups,
 * and the largest supported rank.
 */
export const TENSOR_RANKS = [...CHECKED_RANKS, 136, 176, 256];

/** Text of a variant: "rank 100, biases". */
export function variantOf(params: KernelParams): string {
  return Object.entries(params)
    .filter(([, value]) => value !== false)
    .map(([name, value]) => (value === true ? name : `${name} ${value}`))
    .join(', ');
}

/** The largest difference relative to the largest element; NaN if any element is NaN. */
export function deviation(found: ArrayLike<number>, expected: ArrayLike<number>): number {
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(found[i] - expected[i]));
    largest = Math.max(largest, Math.abs(expected[i]));
  }
  return difference / (largest || 1);
}

/** The larger error; NaN counts as the largest. */
export function worse(left: number, right: number): number {
  return left >= right || Number.isNaN(left) ? left : right;
}

/** Random numbers in [0, 1); a seed gives the same numbers on any machine (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Value of `status` while no row is bad. */
export const NO_ROW = 0xffff_ffff;
/** Limit of an exact solution's residual, relative to ‖b‖. */
export const RESIDUAL_LIMIT = 1e-4;
/**
 * Limit of the deviation from the same number of CG steps in float64, relative to the largest element of x.
 */
export const CG_LIMIT = 1e-4;
/** Like CG_LIMIT, with A in float16: an adapter may round the last bit up or down. */
export const CG_HALF_LIMIT = 4e-3;
/**
 * Like CG_LIMIT, with biases. One eigenvalue of A is then far above the others, so in float32 the search
 * directions lose conjugacy in any implementation.
 */
export const CG_BIAS_LIMIT = 2e-3;
/**
 * Like CG_LIMIT, with an A that tensor cores summed. It is the deviation of the solution that an error in A
 * at the limit for such sums causes.
 */
export const CG_TENSOR_LIMIT = 1e-3;
/**
 * Like CG_TENSOR_LIMIT, with biases. One eigenvalue of A is then far above the others (see CG_BIAS_LIMIT),
 * most of all in rows of thousands of ratings.
 */
export const CG_TENSOR_BIAS_LIMIT = 8e-3;
/** Like CG_LIMIT, for implicit data: one eigenvalue of A, of the Gram matrix, is far above the others. */
export const CG_GRAM_LIMIT = 1e-3;
/**
 * Limit of the residual of exact solutions if rows of θ are multiplied by the roots of weights in float16.
 */
export const ROOTS_LIMIT = 2e-3;
/**
 * Limit of the relative error of sums of products in float32. Each product has a rounding error of about
 * 1e-7 of its value, of either sign.
 */
export const PRODUCT_LIMIT = 2e-6;

const [single, bits] = [new Float32Array(1), new Uint16Array(1)];

/** The bits of the float16 nearest to a number. */
export function halfBits(value: number): number {
  single[0] = value;
  return toHalf(single, bits)[0];
}

/** The nearest float16, as a number. */
export function roundToHalf(value: number): number {
  return fromHalf(halfBits(value));
}
