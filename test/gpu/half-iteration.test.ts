import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkHalfIteration, halfIterationChecks } from '../../gpu/checks/half-iteration.check.ts';
import { updateVariants } from '../../gpu/update/choice/variants.ts';
import { compileEvery } from '../../gpu/update/compile-update.task.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { everyNth } from '../support/deep.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';

const shapes = [
  { rank: 10, solver: 'cg', biases: false },
  { rank: 40, solver: 'cholesky', biases: false },
  { rank: 33, solver: 'cg', biases: true },
  { rank: 20, solver: 'nonnegative', biases: false },
  { rank: 33, solver: 'nonnegative', biases: true },
] as const;

/** The kernels that were compiled since the last call. */
function compiledBy(gpu: Gpu): string[] {
  return gpu.journal.take().flatMap(({ row, name }) => (row === 'compiling' ? [name] : []));
}

describe.skipIf(noGpu)('half-iterations on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  it('find all their kernels compiled, where these were compiled ahead', async () => {
    const ahead: string[] = [];
    for (const shape of [
      { rank: 12, solver: 'cg', biases: true },
      { rank: 520, solver: 'cg', biases: true },
    ] as const) {
      const solver = shape.solver === 'cg' ? ({ steps: 6 } as const) : shape.solver;
      for (const variant of everyNth(updateVariants(gpu.info, shape), 6)) {
        await compileEvery(gpu, { variant, rank: shape.rank, biases: shape.biases, solver });
        ahead.push(...compiledBy(gpu));
        await checkHalfIteration(gpu, variant, shape, 1000);
        expect(compiledBy(gpu), variant.name).toEqual([]);
      }
    }
    expect(ahead.length).toBeGreaterThan(5);
  });

  for (const [number, shape] of shapes.entries()) {
    it(`agree with their twin by variants: ${JSON.stringify(shape)}`, async () => {
      const checks = halfIterationChecks(gpu.info, 1000, [shape]);
      expect(checks.length).toBeGreaterThan(3);
      for (const { variant, run } of everyNth(checks, 6, number)) {
        const { error, limit } = await run(gpu);
        expect(error, variant).toBeLessThanOrEqual(limit);
      }
    });
  }
});
