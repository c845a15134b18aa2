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
