import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { halfIterationChecks } from '../../gpu/kernels/update/half-iteration.check.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';

const shapes = [
  { rank: 10, solver: 'cg', biases: false },
  { rank: 40, solver: 'cholesky', biases: false },
  { rank: 33, solver: 'cg', biases: true },
  { rank: 20, solver: 'nonnegative', biases: false },
  { rank: 33, solver: 'nonnegative', biases: true },
] as const;

describe.skipIf(noGpu)('half-iterations on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  for (const shape of shapes) {
    it(`agree with their twin by every variant: ${JSON.stringify(shape)}`, async () => {
      const checks = halfIterationChecks(gpu.info, 1000, [shape]);
      expect(checks.length).toBeGreaterThan(3);
      for (const { variant, run } of checks) {
        const { error, limit } = await run(gpu);
        expect(error, variant).toBeLessThanOrEqual(limit);
      }
    });
  }
});
