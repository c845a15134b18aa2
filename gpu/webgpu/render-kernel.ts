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
  const body = engine.parseAndRenderSync(text, { ...values }) as string;
  // Directives come before all declarations.
  const [, directives, rest] =
    /^((?:\s*(?:\/\/[^\n]*\n|(?:enable|requires|diagnostic)\b[^;]*;))*)([\s\S]*)$/.exec(
      body,
    ) as RegExpExecArray;
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
