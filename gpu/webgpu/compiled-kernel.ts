import type { KernelDescriptor, KernelParams } from './kernel.ts';

/** A kernel compiled for one variant. */
export interface CompiledKernel<Buffers extends string = string, Uniforms extends string = string> {
  readonly kernel: KernelDescriptor<KernelParams, Buffers, Uniforms>;
  readonly params: KernelParams;
  /** The name in errors: "normal-equations {"rank":100}". */
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  /** Layout of its uniforms and buffers. */
  readonly layout: GPUBindGroupLayout;
}

/** A buffer, or a part of one. */
export type Binding =
  | GPUBuffer
  | { readonly buffer: GPUBuffer; readonly offset?: number; readonly size?: number };

/**
 * A compiled kernel, and a function that returns the number of workgroups to dispatch for `count` rows (or
 * parts of rows, if the kernel computes A and b).
 */
export interface SizedKernel {
  readonly compiled: CompiledKernel;
  workgroups(count: number): number;
}
