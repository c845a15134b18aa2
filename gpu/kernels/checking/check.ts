import type { Gpu } from '../../webgpu/gpu.ts';
import type { KernelParams } from '../kernel.ts';

/** One variant of a kernel against its float64 twin on small data, on whatever GPU there is. */
export interface KernelCheck {
  /** The kernel's name. */
  readonly name: string;
  /** What distinguishes this check from the others of the kernel: "rank 100, biases". */
  readonly variant: string;
  /** Whether the adapter has what the variant needs; where this is missing every adapter has. */
  admitted?(gpu: Gpu): boolean;
  /** `error` is the largest deviation from the twin, in the measure of the check; more than `limit` is a failure, and so is NaN. */
  run(gpu: Gpu): Promise<{ readonly error: number; readonly limit: number }>;
}

/** Ranks around the sizes of tiles, vectors and subgroups; most kernels are checked at these. */
export const CHECKED_RANKS = [1, 7, 10, 32, 63, 64, 100, 128, 200];

/** The same for kernels on tensor cores, and the largest rank that they serve. */
export const TENSOR_RANKS = [...CHECKED_RANKS, 256];

/** "rank 100, biases" */
export function variantOf(params: KernelParams): string {
  return Object.entries(params)
    .filter(([, value]) => value !== false)
    .map(([name, value]) => (value === true ? name : `${name} ${value}`))
    .join(', ');
}
