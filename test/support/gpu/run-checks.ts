import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KernelCheck } from '../../../gpu/checks/support/check.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { noGpu, openTestGpu } from './open-gpu.ts';

/** A test for each check. Checks that the adapter cannot run say so. */
export function describeChecks(title: string, checks: readonly KernelCheck[]): void {
  describe.skipIf(noGpu)(title, () => {
    let gpu: Gpu;
    beforeAll(async () => {
      gpu = await openTestGpu();
    });
    afterAll(() => gpu?.close());

    for (const check of checks) {
      it(`${check.name} agrees with its twin: ${check.variant}`, async (context) => {
        if (check.admitted?.(gpu) === false) {
          console.warn(
            `SKIPPED: ${check.name}, ${check.variant}: ${gpu.info.name} lacks what the variant needs`,
          );
          context.skip();
        }
        const { error, limit } = await check.run(gpu);
        expect(error).toBeLessThanOrEqual(limit);
      });
    }
  });
}
