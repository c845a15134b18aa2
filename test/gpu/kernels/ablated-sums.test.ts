import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ablatedSums, ablations } from '../../../bench/gpu/ablated-sums.ts';
import { slotsError, partsOf, summedSlots } from '../../../gpu/checks/normal-equations.check.ts';
import { ratedRows } from '../../../gpu/checks/support/rated-rows.ts';
import { chooseNormalEquations } from '../../../gpu/equations/normal-equations.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';

describe.skipIf(noGpu)('the benched sums without one technique', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  it.each(Object.keys(ablations))('compute the same equations without %s', async (without) => {
    const params = chooseNormalEquations(40, 'f32', false);
    const rows = ratedRows({ rank: 40, biases: false, precision: 'f32', lengths: [100, 2, 1, 0] });
    const parts = partsOf(rows, 40);
    const { kernel, workgroups } = ablatedSums(without, params);
    const slots = await summedSlots(gpu, kernel, params, rows, parts, {
      precision: 'f32',
      uniforms: {},
      workgroups: workgroups(parts.count),
    });
    expect(slotsError(rows, parts, slots)).toBeLessThan(1e-5);
  });
});
