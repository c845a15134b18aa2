import { Liquid } from 'liquidjs';
import { kernelTexts } from '../generated/kernels-wgsl.ts';
import type { CompiledKernel, KernelDescriptor, KernelParams } from './kernel.ts';
import { hurryPolls } from './polls.ts';

/** The parts of an opened GPU that compiling uses. */
interface CompilingGpu {
  readonly device: GPUDevice;
  requireDevice(doing: string): void;
}

/** A kernel for one variant, before it is compiled. */
export interface KernelVariant {
  readonly kernel: KernelDescriptor;
  readonly params: KernelParams;
  /** The name in errors: see CompiledKernel. */
  readonly label: string;
  /** Makes the WGSL text; tests replace it. */
  readonly render?: typeof renderKernel;
}

/** Compiles a variant. Throws an error with the kernel's label and the line of the text that is wrong. */
export async function compileKernel(
  gpu: CompilingGpu,
  { kernel, params, label, render = renderKernel }: KernelVariant,
): Promise<CompiledKernel> {
  const { device } = gpu;
  const code = render(kernel, params);
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ label, code });
  // Error scopes are a stack, so this one must end before another one begins.
  const scope = device.popErrorScope();
  const layout = bindGroupLayout(device, kernel, label);
  // Starts the driver's compiler now, so that it works while this thread renders the next kernel's text. If
  // the text is wrong, this promise rejects too, but `requireText` throws an error with the line.
  const compiling = device.createComputePipelineAsync({
    label,
    layout: device.createPipelineLayout({ label, bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: 'main' },
  });
  compiling.catch(() => undefined);
  hurryPolls(2);
  try {
    const { messages } = await module.getCompilationInfo();
    const error = await scope;
    gpu.requireDevice(label);
    requireText({ label, code }, messages, error);
  } catch (error) {
    // `Gpu.close` waits for this function, so it must not return before Dawn's promise has settled.
    await Promise.allSettled([compiling]);
    throw error;
  }
  try {
    return { kernel, params, label, pipeline: await compiling, layout };
  } catch (cause) {
    gpu.requireDevice(label);
    throw new Error(`kernel ${label}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

function requireText(
  { label, code }: { readonly label: string; readonly code: string },
  messages: readonly GPUCompilationMessage[],
  error: GPUError | null,
): void {
  const wrong = messages.find(({ type }) => type === 'error');
  if (wrong !== undefined) {
    const line = code.split('\n')[wrong.lineNum - 1] ?? '';
    throw new Error(`kernel ${label}: line ${wrong.lineNum}: ${wrong.message}\n${line}`);
  }
  if (error !== null) throw new Error(`kernel ${label}: ${error.message}`);
}

/**
 * The bind group layout according to the descriptor. A layout derived from the text would omit buffers that
 * a variant does not use.
 */
function bindGroupLayout(
  device: GPUDevice,
  { bindings }: KernelDescriptor,
  label: string,
): GPUBindGroupLayout {
  const visibility = GPUShaderStage.COMPUTE;
  const storage = bindings.map(({ access }, at): GPUBindGroupLayoutEntry => ({
    binding: at + 1,
    visibility,
    buffer: { type: access === 'read' ? 'read-only-storage' : 'storage' },
  }));
  const entries: GPUBindGroupLayoutEntry[] = [
    { binding: 0, visibility, buffer: { type: 'uniform' } },
    ...storage,
  ];
  return device.createBindGroupLayout({ label, entries });
}

/**
 * The text of a shader, in which imports (`#import parts/<name>`) are replaced by the files' texts,
 * recursively. If the first line is `// Template: ...`, which is the reason for using a template, it is
 * removed.
 */
function withImports(name: string): string {
  const text = kernelTexts[name];
  if (text === undefined) throw new Error(`gpu/ has no shader ${name}.wgsl`);
  return text
    .replace(/^\/\/ Template: .*\n/, '')
    .replaceAll(/^([ \t]*)#import (\S+)$/gm, (_, indent: string, part: string) => indent + withImports(part));
}

// The locale is set since the library otherwise loads the system's language tables, which takes 20 ms and
// more; no shader needs them.
const engine = new Liquid({
  locale: 'en-US',
  templates: Object.fromEntries(Object.keys(kernelTexts).map((name) => [name, withImports(name)])),
  strictVariables: true,
  strictFilters: true,
  ownPropertyOnly: true,
});

/** The WGSL text of a variant. */
export function renderKernel<Params extends KernelParams>(
  kernel: KernelDescriptor<Params>,
  params: Params,
): string {
  const text = withImports(kernel.name);
  const values = kernel.values(params);
  // Text without {{ }} and {% %} is left as it is, which saves the template engine's time.
  const render = (template: string) =>
    /\{[{%]/.test(template) ? (engine.parseAndRenderSync(template, { ...values }) as string) : template;
  const body = render(text);
  // WGSL requires directives before all declarations.
  const [, directives, rest] =
    /^((?:\s*(?:\/\/[^\n]*\n|(?:enable|requires|diagnostic)\b[^;]*;))*)([\s\S]*)$/.exec(
      body,
    ) as RegExpExecArray;
  return `${directives}\n${constants(values)}\n${render(declarations(kernel))}\n${rest}`;
}

function declarations({ bindings, uniforms }: KernelDescriptor): string {
  const fields = Object.entries(uniforms).map(([name, type]) => `  ${name}: ${type},`);
  const buffers = bindings.map(
    ({ name, access, type }, at) => `@group(0) @binding(${at + 1}) var<storage, ${access}> ${name}: ${type};`,
  );
  return [
    'struct Params {',
    ...fields,
    '}',
    '@group(0) @binding(0) var<uniform> params: Params;',
    ...buffers,
  ].join('\n');
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
