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
