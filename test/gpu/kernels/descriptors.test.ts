import { describe, expect, it } from 'vitest';
import { kernelTexts } from '../../../gpu/generated/kernels-wgsl.ts';
import { renderKernel } from '../../../gpu/webgpu/compile-kernel.ts';
import { allKernels } from '../../support/gpu/all-kernels.ts';

/** Storage buffers that WebGPU guarantees to a kernel on any adapter. */
const STORAGE_BUFFERS = 8;

const all = await allKernels();

describe('descriptors', () => {
  it('there is one for every kernel', () => {
    const kernels = Object.keys(kernelTexts).filter((path) => !path.includes('/'));
    expect(all.map(({ name }) => name).sort()).toEqual(kernels.sort());
  });

  const variants = all.flatMap((kernel) => kernel.samples.map((params) => ({ kernel, params })));
  for (const { kernel, params } of variants) {
    it(`know threads and memory of a workgroup of ${kernel.name} ${JSON.stringify(params)}`, () => {
      const text = workgroupOf(renderKernel(kernel, params));
      const { threads, bytes } = kernel.workgroup(params);
      expect(text.threads).toBe(threads);
      expect(text.bytes).toBeLessThanOrEqual(bytes);
      if (!kernel.needs(params).some((need) => need === 'tensor' || need === 'int8'))
        expect(kernel.bindings.length).toBeLessThanOrEqual(STORAGE_BUFFERS);
    });
  }
});

describe('shaders', () => {
  it('are plain WGSL, or templates that say why in their first line', () => {
    for (const [name, text] of Object.entries(kernelTexts))
      expect([name, /\{[{%]/.test(text)]).toEqual([name, /^\/\/ Template: .{20,}\n/.test(text)]);
  });
});

/** Threads of a workgroup and bytes of its memory in a WGSL text. */
function workgroupOf(source: string) {
  const text = source.replaceAll(/\/\/[^\n]*/g, '');
  const constants = new Map(
    Array.from(text.matchAll(/\bconst (\w+)(?:: u32)? = ([^;]+);/g), ([, name, value]) => [name, value]),
  );
  const size = /@compute @workgroup_size\(([^)]*)\)/.exec(text)?.[1] ?? '';
  const shared = Array.from(text.matchAll(/var<workgroup> \w+: ([^;]+);/g), ([, type]) =>
    bytesOf(type, constants),
  );
  return { threads: valueOf(size, constants), bytes: shared.reduce((a, b) => a + b, 0) };
}

function bytesOf(type: string, constants: ReadonlyMap<string, string>): number {
  const array = /^array<(.+), ([^,>]+)>$/.exec(type);
  if (array) return bytesOf(array[1], constants) * valueOf(array[2], constants);
  const vector = /^vec([234])/.exec(type);
  return vector ? 4 * Number(vector[1] === '3' ? 4 : vector[1]) : 4;
}

/** Value of a sum of products of numbers and constants, which are themselves such sums. */
function valueOf(expression: string, constants: ReadonlyMap<string, string>): number {
  const factor = (text: string): number => {
    const constant = constants.get(text.trim());
    return constant === undefined ? Number(text.trim().replace(/u$/, '')) : valueOf(constant, constants);
  };
  return expression
    .split('+')
    .map((term) =>
      term
        .split('*')
        .map(factor)
        .reduce((a, b) => a * b),
    )
    .reduce((a, b) => a + b);
}
