import { Liquid } from 'liquidjs';
import { kernelTexts } from '../generated/kernels-wgsl.ts';
import type { KernelDescriptor, KernelParams } from './kernel.ts';

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
