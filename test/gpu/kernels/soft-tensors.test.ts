/**
 * The texts of kernels for subgroups and tensor cores, and their checks, on an adapter without these: subgroups
 * and matrices are replaced by functions.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { subgroupChecks } from '../../../gpu/checks/checks.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { isDeep } from '../../support/deep.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';
import { withSoftTensors } from '../../support/gpu/soft-tensors.ts';

/** Small ranks: one with factors in float16 and one with biases, or more in the deep run. */
const quick = [
  /^normal-equations-tensor rank 10, bin 32, biases, .*parts/,
  /^update-tensor bin 32, (halfA, rank 7|biases, rank 10)\b/,
  /^update-int8 rank 40, biases, steps 6/,
  /^solve-cg-registers .*(halfA, half, rank 7|biases, half, rank 10\b|halfA, biases|not finite)/,
];
const checks = subgroupChecks.filter(({ name, variant }) =>
  isDeep
    ? name !== 'update-short' && !/rank ([5-9]\d|\d\d\d)/.test(variant)
    : quick.some((some) => some.test(`${name} ${variant}`)),
);

describe.skipIf(noGpu)('kernels for subgroups and tensor cores, in software', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = withSoftTensors(await openTestGpu());
  });
  afterAll(() => gpu?.close());

  for (const { name, variant, run } of checks) {
    it(`pass their check: ${name} ${variant}`, async () => {
      const { error, limit } = await run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }

  it('fail their check where a step is too long', async () => {
    const check = checks.find(({ name }) => name === 'solve-cg-registers')!;
    const longer = (text: string) => text.replace('total.x / total.y', '1.1 * total.x / total.y');
    const { error, limit } = await check.run(withSoftTensors(gpu, longer));
    expect(error).toBeGreaterThan(limit);
  });
});
