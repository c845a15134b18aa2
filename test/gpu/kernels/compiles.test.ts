import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { normalEquationsTensorKernel } from '../../../gpu/equations/normal-equations-tensor.ts';
import { normalEquationsKernel } from '../../../gpu/equations/normal-equations.ts';
import { normalEquationsInt8Kernel } from '../../../gpu/int8/int8-plan.ts';
import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import { everyVariant } from '../../../gpu/update/choice/variants.ts';
import { updateShortKernel } from '../../../gpu/update/update-short.ts';
import { updateInt8Kernel, updateTensorKernel } from '../../../gpu/update/update-tensor.ts';
import { vectorProductsKernel } from '../../../gpu/vectors/products.ts';
import { renderKernel } from '../../../gpu/webgpu/compile-kernel.ts';
import type { KernelDescriptor, KernelParams } from '../../../gpu/webgpu/kernel.ts';
import { everyNth } from '../../support/deep.ts';
import { allKernels } from '../../support/gpu/all-kernels.ts';
import { tensorGpu } from '../../support/gpu/gpu-info.ts';
import { type NullGpu, openNullGpu } from '../../support/gpu/null-gpu.ts';

const kernels = await allKernels();

describe('the texts of kernels, also those for other hardware', () => {
  let gpu: NullGpu;
  beforeAll(async () => {
    gpu = await openNullGpu();
  });
  afterAll(() => gpu?.close());

  it('are judged with all features', () => {
    expect([...gpu.features].sort()).toEqual([
      'chromium-experimental-subgroup-matrix',
      'shader-f16',
      'subgroups',
    ]);
  });

  it('are refused with the line of an error', async () => {
    expect(
      await gpu.errorsOf('wrong', '@compute @workgroup_size(1) fn main() { let x: u32 = 1.5; }'),
    ).toEqual([expect.stringMatching(/line 1: .*u32/)]);
  });

  for (const kernel of kernels) {
    it(`compile: ${kernel.name}`, async () => {
      for (const params of kernel.samples)
        expect(await gpu.errorsOf(kernel.name, renderKernel(kernel, params)), JSON.stringify(params)).toEqual(
          [],
        );
    });
  }

  const shapes = [
    [10, false],
    [64, true],
    [100, false],
    [136, true],
    [200, true],
  ] as const;
  for (const [rank, biases] of everyNth(shapes, 5, 1)) {
    it(`compile for every variant of a half-iteration of rank ${rank}`, async () => {
      const texts = new Map<string, string>();
      const add = <Params extends KernelParams>(kernel: KernelDescriptor<Params>, params: Params) =>
        void texts.set(`${kernel.name} ${JSON.stringify(params)}`, renderKernel(kernel, params));
      for (const variant of everyVariant(tensorGpu, { rank, solver: 'cg', biases }))
        addKernels(add, variant, rank, biases);
      expect(texts.size).toBeGreaterThan(10);
      for (const [label, text] of texts) expect(await gpu.errorsOf(label, text), label).toEqual([]);
    });
  }
});

type Add = <Params extends KernelParams>(kernel: KernelDescriptor<Params>, params: Params) => void;

/** Adds the kernels that differ between variants. */
function addKernels(
  add: Add,
  { sum, fused, short, precision }: UpdateVariant,
  rank: number,
  biases: boolean,
): void {
  if (sum.kernel === 'tensor') add(normalEquationsTensorKernel, { rank, bin: sum.bin, biases });
  else if (sum.kernel === 'int8' || precision === 'int8') {
    add(normalEquationsInt8Kernel, { rank, biases });
    if (fused !== undefined)
      return add(updateInt8Kernel, { rank, biases, halfA: fused.halfA, room: fused.room });
  } else if (sum.kernel === 'vectors') {
    for (const first of [true, false])
      add(vectorProductsKernel, {
        rank,
        precision,
        biases,
        implicit: false,
        first,
        threads: sum.threads,
        lanes: sum.lanes,
        width: sum.width,
      });
  } else {
    const { kernel: _kernel, ...tiles } = sum;
    add(normalEquationsKernel, { rank, precision, biases, ...tiles });
  }
  if (fused) add(updateTensorKernel, { rank, bin: fused.bin, biases, halfA: fused.halfA, room: fused.room });
  if (short > 0)
    for (const centre of [false, biases]) add(updateShortKernel, { rank, longest: short, biases, centre });
}
