import type { Gpu } from '../../webgpu/gpu.ts';

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
