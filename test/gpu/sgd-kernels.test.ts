import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sgdChecks } from '../../gpu/checks/all.ts';
import type { Gpu } from '../../gpu/gpu.ts';
import { noGpu, openTestGpu } from '../support/open-gpu.ts';

describe.skipIf(noGpu)('kernels of SGD on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    // As in use: nothing is guarded, and workgroup memory holds anything at first.
    gpu = await openTestGpu({ robust: false });
  });
  afterAll(() => gpu?.close());

  for (const check of sgdChecks) {
    it(`${check.name} agrees with its twin: ${check.variant}`, async (context) => {
      if (check.admitted?.(gpu) === false) {
        console.warn(`SKIPPED: ${check.name}, ${check.variant}: ${gpu.info.name} lacks what the variant needs`);
        context.skip();
      }
      const { error, limit } = await check.run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }
});
