import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  dataParallelChecks,
  type DataParallelShape,
} from '../../../gpu/checks/equations/data-parallel.check.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { everyNth, isDeep } from '../../support/deep.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';

/** Each solver and each kind, and in the deep run their pairs. */
const shapes: readonly DataParallelShape[] = [
  { rank: 10, solver: 'cg', kind: 'explicit', p: 3 },
  { rank: 20, solver: 'nonnegative', kind: 'explicit', p: 2 },
  { rank: 9, solver: 'cholesky', kind: 'biases', p: 2 },
  { rank: 20, solver: 'cholesky', kind: 'implicit', p: 3 },
];
const deepShapes: readonly DataParallelShape[] = [
  { rank: 17, solver: 'cholesky', kind: 'explicit', p: 1 },
  { rank: 33, solver: 'cg', kind: 'biases', p: 5 },
];

describe.skipIf(noGpu)('half-iterations by way of equations on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  for (const [number, shape] of (isDeep ? [...shapes, ...deepShapes] : shapes).entries()) {
    it(`agree with their twin by ways to sum: ${JSON.stringify(shape)}`, async () => {
      const checks = dataParallelChecks(gpu.info, 1000, [shape]);
      expect(checks.length).toBeGreaterThan(1);
      for (const { variant, run } of everyNth(checks, 3, number)) {
        const { error, limit } = await run(gpu);
        expect(error, variant).toBeLessThanOrEqual(limit);
      }
    });
  }
});
