import { assert, asyncProperty, constantFrom, integer, boolean, record } from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Partition } from '../../../engine/partition.ts';
import { taskCheck, taskChecks } from '../../../gpu/checks/checks.ts';
import { runTask } from '../../../gpu/checks/support/run-kernel.ts';
import { squaredError } from '../../../gpu/loss/squared-error.task.ts';
import { topN } from '../../../gpu/serving/top-n.task.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { factorsOf, randomBlock, randomFactors, vectorOf } from '../../../operators/tasks/sample-inputs.ts';
import { byNorm, topNSample } from '../../../operators/tasks/samples.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';
import { sampleOf, solvesRows } from '../../support/gpu/run-checks.ts';

describe.skipIf(noGpu)('loss, predictions, best columns and all tasks that solve no rows, on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  const checks = taskChecks().filter(({ name }) => !solvesRows.test(name));
  for (const check of sampleOf(checks)) {
    it(`${check.name} agrees with the CPU: ${check.variant}`, async () => {
      const { error, limit } = await check.run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }

  it('sums give the same bits each time', async () => {
    const inputs = {
      block: randomBlock([3000, 1, 0, 2000], 100, 1),
      rowFactors: randomFactors(4, 10, 1),
      columnFactors: randomFactors(100, 10, 2),
    };
    const params = { from: 0, to: 4, rank: 10 };
    const first = await runTask(gpu, squaredError, params, inputs);
    expect((await runTask(gpu, squaredError, params, inputs)).values).toEqual(first.values);
  });

  it('a NaN among the factors shows in the sums', async () => {
    const inputs = {
      rowFactors: factorsOf(2, 3, (row) => (row === 0 ? 1 : NaN)),
      columnFactors: randomFactors(9, 3, 2),
      block: randomBlock([5, 5], 9, 1),
    };
    expect(
      (await runTask(gpu, squaredError, { from: 0, to: 1, rank: 3 }, inputs)).values?.squared,
    ).toBeGreaterThan(0);
    expect((await runTask(gpu, squaredError, { from: 0, to: 2, rank: 3 }, inputs)).values?.squared).toBeNaN();
  });

  it('top-n agrees with its twin on any shape', async () => {
    const shapes = record({
      rows: integer({ min: 1, max: 140 }),
      columns: integer({ min: 1, max: 200 }),
      // A kernel is compiled for each rank.
      rank: constantFrom(1, 13),
      n: integer({ min: 1, max: 30 }),
      seed: integer({ min: 0, max: 1e6 }),
      excluding: boolean(),
      bounded: boolean(),
      ordered: boolean(),
    });
    await assert(
      asyncProperty(shapes, async ({ rows, columns, rank, n, seed, excluding, bounded, ordered }) => {
        const { columnFactors, bounds, order } = byNorm(randomFactors(columns, rank, seed));
        const exclude = randomBlock(
          Array.from({ length: rows }, (_, row) => (row * seed) % columns),
          columns,
          seed,
        );
        const sample = topNSample({
          variant: 'any',
          inputs: {
            rowFactors: randomFactors(rows, rank, seed + 1),
            columnFactors,
            ...(bounded && { bounds }),
            ...(ordered && { order }),
            ...(excluding && { exclude }),
          },
          n,
        });
        const { error, limit } = await taskCheck(sample).run(gpu);
        expect(error).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 8, seed: 1 },
    );
  });

  it('lists do not depend on how rows are cut into tasks', async () => {
    const inputs = {
      rowFactors: randomFactors(150, 9, 1),
      columnFactors: randomFactors(130, 9, 2),
      exclude: randomBlock(
        Array.from({ length: 150 }, (_, row) => row % 50),
        130,
        3,
      ),
    };
    const lists = async (from: number, to: number) => {
      const { items, scores } = (await runTask(gpu, topN, { from, to, rank: 9, n: 5 }, inputs)).partitions!
        .top.columns;
      return { items: [...items], scores: [...scores] };
    };
    const [whole, first, second] = [await lists(0, 150), await lists(0, 37), await lists(37, 150)];
    expect({ items: [...first.items, ...second.items], scores: [...first.scores, ...second.scores] }).toEqual(
      whole,
    );
  });

  it('top-n leaves out columns after the bound that all rows have reached', async () => {
    // The last column is the best, but its bound is too low: only a search that ignores the bound finds it.
    const columnFactors = factorsOf(200, 2, (row) => (row === 199 ? 100 : row < 64 ? 1 : 0));
    const bounds = vectorOf(
      'column-bounds',
      Float32Array.from({ length: 25 }, (_, eight) => (eight < 8 ? 1.5 : 0.1)),
    );
    const rowFactors = factorsOf(3, 2, () => 1);
    const best = async (bounded: { readonly bounds?: Partition }) => {
      const { partitions } = await runTask(
        gpu,
        topN,
        { from: 0, to: 3, rank: 2, n: 1 },
        { rowFactors, columnFactors, ...bounded },
      );
      return [...partitions!.top.columns.items];
    };
    expect(await best({})).toEqual([199, 199, 199]);
    expect(await best({ bounds })).toEqual([0, 0, 0]);
  });

  it('top-n does nothing once it is cancelled', async () => {
    const inputs = { rowFactors: randomFactors(3, 4, 1), columnFactors: randomFactors(5, 4, 2) };
    const before = gpu.counters.readbacks;
    await runTask(gpu, topN, { from: 0, to: 3, rank: 4, n: 2 }, inputs, { cancelled: true });
    expect(gpu.counters.readbacks).toBe(before);
  });
});
