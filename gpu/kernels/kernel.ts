import { Liquid } from 'liquidjs';
import { kernelTexts } from '../generated/kernels-wgsl.ts';

/**
 * What an adapter may lack and a kernel may need. `subgroups` are of 32 threads, `quads` of four at least. `tensor` is chromium-experimental-subgroup-matrix with
 * f16 x f16 -> f32 in 16x16x16.
 */
export type GpuFeature = 'f16' | 'quads' | 'subgroups' | 'tensor';

/** Values of a kernel's parameters, as plain JSON: they are the key of the compiled pipeline. */
export type KernelParams = Readonly<Record<string, number | boolean | string>>;

/**
 * One compute shader: the file kernels/<name>.wgsl and how it is used. Binding 0 is the uniform `params`, a struct of
 * `uniforms` in this order; the storage buffers follow from binding 1 in the order of `bindings`. A test compares the text
 * with this.
 */
export interface KernelDescriptor<Params extends KernelParams = KernelParams> {
  readonly name: string;
  readonly bindings: readonly { readonly name: string; readonly access: 'read' | 'read_write' }[];
  readonly uniforms: readonly { readonly name: string; readonly type: 'u32' | 'i32' | 'f32' }[];
  /** Features that the variant cannot do without. */
  needs(params: Params): readonly GpuFeature[];
  /**
   * What the text sees. Whole numbers and booleans in UPPER_CASE become WGSL constants (`const RANK: u32 = 100u;`) in front
   * of it; everything is at hand to the template as well, {{ RANK }} or {% for tile in tiles %}.
   */
  values(params: Params): Readonly<Record<string, unknown>>;
  /** Threads of a workgroup, and bytes of workgroup memory: an adapter's limits decide whether the variant is admissible. */
  workgroup(params: Params): { readonly threads: number; readonly bytes: number };
}

const engine = new Liquid({ templates: { ...kernelTexts }, strictVariables: true, strictFilters: true, ownPropertyOnly: true });

/** The WGSL text of a variant. */
export function renderKernel<Params extends KernelParams>(kernel: KernelDescriptor<Params>, params: Params): string {
  const text = kernelTexts[kernel.name];
  if (text === undefined) throw new Error(`there is no kernel text kernels/${kernel.name}.wgsl`);
  const values = kernel.values(params);
  const body = engine.parseAndRenderSync(text, { ...values }) as string;
  // Directives come before all declarations.
  const [, directives, rest] = /^((?:\s*(?:\/\/[^\n]*\n|(?:enable|requires|diagnostic)\b[^;]*;))*)([\s\S]*)$/.exec(body) as RegExpExecArray;
  return `${directives}\n${constants(values)}\n${rest}`;
}

function constants(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .filter(([name]) => /^[A-Z][A-Z0-9_]*$/.test(name))
    .flatMap(([name, value]) => {
      if (typeof value === 'boolean') return [`const ${name}: bool = ${value};`];
      if (typeof value === 'number' && Number.isInteger(value)) return [`const ${name}: u32 = ${value}u;`];
      return [];
    })
    .join('\n');
}
