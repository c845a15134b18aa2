import type { GpuFeature, GpuInfo } from './gpu-info.ts';

/** Values of a kernel's parameters as plain JSON, the key of the compiled pipeline. */
export type KernelParams = Readonly<Record<string, number | boolean | string | undefined>>;

/** A storage buffer of a kernel. */
export interface KernelBinding<Name extends string = string> {
  readonly name: Name;
  readonly access: 'read' | 'read_write';
  /** The WGSL type, which may use the template values. */
  readonly type: string;
}

/**
 * A compute shader: its text is in <name>.wgsl, and its declarations are generated from this descriptor.
 * Binding 0 is the uniform `params`, a struct of `uniforms` in order. Storage buffers have the bindings from
 * 1 on, in the order of `bindings`.
 */
export interface KernelDescriptor<
  Params extends KernelParams = KernelParams,
  Buffers extends string = string,
  Uniforms extends string = string,
> {
  readonly name: string;
  readonly bindings: readonly KernelBinding<Buffers>[];
  readonly uniforms: Readonly<Record<Uniforms, 'u32' | 'i32' | 'f32'>>;
  /** Features that the variant requires. */
  needs(params: Params): readonly GpuFeature[];
  /**
   * Template values. Whole numbers and booleans in UPPER_CASE become WGSL constants (`const RANK: u32 =
   * 100u;`) before the text; the template can use all values, as in {{ RANK }} or {% for tile in tiles %}.
   */
  values(params: Params): Readonly<Record<string, unknown>>;
  /** Threads of a workgroup and bytes of workgroup memory, compared with the adapter's limits. */
  workgroup(params: Params): { readonly threads: number; readonly bytes: number };
  /** Variants that together use every line of the text; tests compile them. */
  readonly samples: readonly Params[];
}

/**
 * A kernel as its file describes it. `reads` and `writes`: storage buffers and their WGSL types, in the order of
 * bindings; those in `writes` may be read too. May be absent: features (default: none), `samples` (one variant
 * without parameters), `bytes` of workgroup memory (0), and `workgroup` where `bytes` and the value THREADS say it.
 */
export interface KernelDescription<
  Params extends KernelParams,
  Read extends string,
  Written extends string,
  Uniforms extends string,
>
  extends
    Pick<KernelDescriptor<Params, Read | Written, Uniforms>, 'name' | 'uniforms' | 'values'>,
    Partial<Pick<KernelDescriptor<Params, Read | Written, Uniforms>, 'needs' | 'workgroup' | 'samples'>> {
  readonly reads?: Readonly<Record<Read, string>>;
  readonly writes: Readonly<Record<Written, string>>;
  readonly bytes?: number | ((params: Params) => number);
}

/** Creates a descriptor whose buffer and uniform names the compiler checks: `kernelOf<Params>()({ ... })`. */
export function kernelOf<Params extends KernelParams = Record<string, never>>() {
  return <Read extends string, Written extends string, Uniforms extends string>({
    reads = {} as Record<Read, string>,
    writes,
    bytes = 0,
    ...kernel
  }: KernelDescription<Params, Read, Written, Uniforms>): KernelDescriptor<
    Params,
    Read | Written,
    Uniforms
  > => ({
    needs: () => [],
    workgroup: (params) => ({
      threads: Number(kernel.values(params).THREADS),
      bytes: typeof bytes === 'number' ? bytes : bytes(params),
    }),
    samples: [{} as Params],
    ...kernel,
    bindings: [...bindingsOf(reads, 'read'), ...bindingsOf(writes, 'read_write')],
  });
}

function bindingsOf<Name extends string>(
  types: Readonly<Record<Name, string>>,
  access: KernelBinding['access'],
): KernelBinding<Name>[] {
  return (Object.keys(types) as Name[]).map((name) => ({ name, access, type: types[name] }));
}

export type BuffersOf<Kernel> = Kernel extends { readonly bindings: readonly KernelBinding<infer Names>[] }
  ? Names
  : never;

/** The numbers 0, 1, ... count - 1, for loops of templates. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/**
 * True if an adapter has what a variant requires: features, threads, workgroup memory and number of buffers.
 */
export function admits<Params extends KernelParams>(
  { features, limits }: GpuInfo,
  kernel: KernelDescriptor<Params>,
  params: Params,
): boolean {
  const { threads, bytes } = kernel.workgroup(params);
  return (
    kernel.needs(params).every((feature) => features.includes(feature)) &&
    threads <= limits.workgroupThreads &&
    bytes <= limits.workgroupBytes &&
    kernel.bindings.length <= limits.storageBuffers
  );
}

export interface CompiledKernel<Buffers extends string = string, Uniforms extends string = string> {
  readonly kernel: KernelDescriptor<KernelParams, Buffers, Uniforms>;
  readonly params: KernelParams;
  /** The name in errors: "normal-equations {"rank":100}". */
  readonly label: string;
  readonly pipeline: GPUComputePipeline;
  /** Layout of its uniforms and buffers. */
  readonly layout: GPUBindGroupLayout;
}

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
