import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kernelSamples } from '../../gpu/descriptors/all.ts';
import { renderKernel } from '../../gpu/kernel.ts';
import { type NullGpu, openNullGpu } from '../support/null-gpu.ts';

describe('the texts of kernels, those for hardware that is not here too', () => {
  let gpu: NullGpu;
  beforeAll(async () => {
    gpu = await openNullGpu();
  });
  afterAll(() => gpu?.close());

  it('are judged with all features', () => {
    expect([...gpu.features].sort()).toEqual(['chromium-experimental-subgroup-matrix', 'shader-f16', 'subgroups']);
  });

  it('are found wrong where they are', async () => {
    expect(await gpu.errorsOf('wrong', '@compute @workgroup_size(1) fn main() { let x: u32 = 1.5; }')).toEqual([expect.stringMatching(/line 1: .*u32/)]);
  });

  for (const { kernel, variants } of kernelSamples) {
    it(`compile: ${kernel.name}`, async () => {
      for (const params of variants) expect(await gpu.errorsOf(kernel.name, renderKernel(kernel, params)), JSON.stringify(params)).toEqual([]);
    });
  }
});
