/**
 * Features that a kernel may require and an adapter may lack:
 *
 * - `f16`: float16 numbers in shaders.
 * - `subgroups`: subgroups of exactly 32 threads; `quads`: subgroups of at least four.
 * - `tensor`, `int8`: products of matrices by subgroups (chromium-experimental-subgroup-matrix), in float16
 *   with float32 sums (16 x 16 x 16), and in 8-bit integers with 32-bit sums (16 x 16 x 32).
 */
export type GpuFeature = 'f16' | 'quads' | 'subgroups' | 'tensor' | 'int8';

export interface AcquireOptions {
  /**
   * True: Dawn checks every buffer access against the buffer's bounds. False: kernels check bounds
   * themselves where that is necessary.
   */
  readonly robust?: boolean;
  /** Features to hide, as if the adapter lacked them. */
  readonly without?: readonly GpuFeature[];
}

/** Name, features and limits of an adapter, as plain data. */
export interface GpuInfo {
  /** "NVIDIA H200" */
  readonly name: string;
  readonly vendor: string;
  readonly architecture: string;
  /** True when it computes on the processor. */
  readonly software: boolean;
  readonly features: readonly GpuFeature[];
  /** Threads of a subgroup, or 0 when subgroups differ in size. */
  readonly subgroupSize: number;
  readonly timestamps: boolean;
  readonly limits: GpuLimits;
}

export interface GpuLimits {
  readonly bufferBytes: number;
  readonly bindingBytes: number;
  readonly workgroupBytes: number;
  readonly workgroupThreads: number;
  readonly workgroupsPerDimension: number;
  readonly storageBuffers: number;
}
