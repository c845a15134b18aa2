import type { GpuFeature, GpuInfo } from './gpu-info.ts';

/** Values of a kernel's parameters as plain JSON, the key of the compiled pipeline. */
export type KernelParams = Readonly<Record<string, number | boolean | string | undefined>>;

/** A storage buffer of a kernel. */
export interface KernelBinding {
  readonly name: string;
  readonly access: 'read' | 'read_write';
  /** The WGSL type; it can use the values of the text. */
  readonly type: string;
}

/**
 * A compute shader: the text <name>.wgsl, and its declarations, which are made from here. Binding 0 is the
 * uniform `params`, a struct of `uniforms` in their order; the storage buffers follow from binding 1 in the
 * order of `bindings`.
 */
export interface KernelDescriptor<Params extends KernelParams = KernelParams> {
  readonly name: string;
  readonly bindings: readonly KernelBinding[];
  readonly uniforms: Readonly<Record<string, 'u32' | 'i32' | 'f32'>>;
  /** Features that the variant needs. */
  needs(params: Params): readonly GpuFeature[];
  /**
   * Values for the text. Whole numbers and booleans in UPPER_CASE become WGSL constants (`const RANK: u32 =
   * 100u;`) in front of it; the template can use all values, as in {{ RANK }} or {% for tile in tiles %}.
   *
   */
  values(params: Params): Readonly<Record<string, unknown>>;
  /** Threads of a workgroup and bytes of workgroup memory, which an adapter's limits must allow. */
  workgroup(params: Params): { readonly threads: number; readonly bytes: number };
}

/** Storage buffers that a kernel only reads, and their types, in the order of their bindings. */
export function reads(types: Readonly<Record<string, string>>): KernelBinding[] {
  return Object.entries(types).map(([name, type]) => ({ name, access: 'read', type }));
}

/** Storage buffers that a kernel writes, reading them or not. */
export function writes(types: Readonly<Record<string, string>>): KernelBinding[] {
  return Object.entries(types).map(([name, type]) => ({ name, access: 'read_write', type }));
}

/** The numbers 0, 1, ... count - 1, for loops of templates. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/**
 * True when an adapter has the features, threads, workgroup memory and number of buffers that a variant
 * needs.
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
