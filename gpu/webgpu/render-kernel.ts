import { Liquid } from 'liquidjs';
import { kernelTexts } from '../generated/kernels-wgsl.ts';
import type { KernelDescriptor, KernelParams } from './kernel.ts';

// Without a locale, which no shader needs, the library asks for the system's: loading the tables of languages
// takes 20 ms and more.
const engine = new Liquid({
  locale: 'en-US',
  templates: { ...kernelTexts },
  strictVariables: true,
  strictFilters: true,
  ownPropertyOnly: true,
});

/** The WGSL text of a variant. */
export function renderKernel<Params extends KernelParams>(
  kernel: KernelDescriptor<Params>,
  params: Params,
): string {
  const text = kernelTexts[kernel.name];
  if (text === undefined) throw new Error(`gpu/ has no shader ${kernel.name}.wgsl`);
  const values = kernel.values(params);
  const render = (template: string) => engine.parseAndRenderSync(template, { ...values }) as string;
  const body = render(text);
  // Directives come before all declarations.
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
