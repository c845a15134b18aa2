import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { taskCheck } from '../../../gpu/checks/checks.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { taskSamples } from '../../../operators/tasks/samples.ts';
import { byValues, isDeep } from '../../support/deep.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';
import { solvesRows } from '../../support/gpu/run-checks.ts';

/** Each task with biases and for implicit data at its lowest ranks; in the deep run all kinds of data and ranks. */
const all = [...taskSamples()].filter(({ kernel }) => solvesRows.test(kernel));
const samples = isDeep
  ? all
  : byValues(
      all.filter(({ variant }) => !/explicit|rank (64|100|200|520|600|1\d\d\d|2048|4096)/.test(variant)),
      ({ kernel, variant }) => ({ kernel, kind: `${kernel} ${variant.replace(/\d+/, '')}` }),
    );

describe.skipIf(noGpu)('rows solved by equations and by products with vectors on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  it('are samples of each such task', () => {
    const kernelsOf = (some: typeof all) => new Set(some.map(({ kernel }) => kernel));
    expect(kernelsOf(samples)).toEqual(kernelsOf(all));
  });

  for (const sample of samples) {
    it(`agree with the CPU: ${sample.kernel}, ${sample.variant}`, async () => {
      const { error, limit } = await taskCheck(sample).run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }
});
