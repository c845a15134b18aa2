/**
 * Features that a kernel may require and an adapter may lack:
 *
 * - `subgroups`: of 32 threads; `quads`: of at least four.
 * - `tensor`: chromium-experimental-subgroup-matrix with f16 x f16 -> f32 in 16x16x16.
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
