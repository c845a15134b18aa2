import { assert, asyncProperty, integer, boolean, record } from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lossChecks } from '../../../gpu/checks/checks.ts';
import { hostMatrix, randomBlock, randomMatrix, runHandler } from '../../../gpu/checks/support/task-scope.ts';
import { rankingChecks } from '../../../gpu/checks/ranking/ranking.check.ts';
import { byNorm, topNCheck, topNChecks } from '../../../gpu/checks/serving/top-n.check.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import { squaredError } from '../../../gpu/loss/squared-error.task.ts';
import { topN } from '../../../gpu/serving/top-n.task.ts';
import { noGpu, openTestGpu } from '../../support/gpu/open-gpu.ts';

describe.skipIf(noGpu)('loss, predictions, best columns and places on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  for (const check of [...lossChecks, ...topNChecks, ...rankingChecks]) {
    it(`${check.name} agrees with its twin: ${check.variant}`, async () => {
      const { error, limit } = await check.run(gpu);
      expect(error).toBeLessThanOrEqual(limit);
    });
  }

  it('sums give the same bits each time', async () => {
    const block = randomBlock([3000, 1, 0, 2000], 100, 1);
    const inputs = {
      matrices: { rowFactors: randomMatrix(4, 10, 1), columnFactors: randomMatrix(100, 10, 2) },
      blocks: { block },
    };
    const params = { from: 0, to: 4, rank: 10 };
    const first = await runHandler(gpu, squaredError, params, inputs);
    expect((await runHandler(gpu, squaredError, params, inputs)).values).toEqual(first.values);
  });

  it('a NaN among the factors shows in the sums', async () => {
    const rowFactors = hostMatrix(2, 3, (row) => (row === 0 ? 1 : NaN));
    const inputs = {
      matrices: { rowFactors, columnFactors: randomMatrix(9, 3, 2) },
      blocks: { block: randomBlock([5, 5], 9, 1) },
    };
    expect(
      (await runHandler(gpu, squaredError, { from: 0, to: 1, rank: 3 }, inputs)).values?.squared,
    ).toBeGreaterThan(0);
    expect(
      (await runHandler(gpu, squaredError, { from: 0, to: 2, rank: 3 }, inputs)).values?.squared,
    ).toBeNaN();
  });

  it('top-n agrees with its twin on any shape', async () => {
    const shapes = record({
      rows: integer({ min: 1, max: 140 }),
      columns: integer({ min: 1, max: 200 }),
      rank: integer({ min: 1, max: 20 }),
      n: integer({ min: 1, max: 30 }),
      seed: integer({ min: 0, max: 1e6 }),
      excluding: boolean(),
      bounded: boolean(),
      ordered: boolean(),
    });
    await assert(
      asyncProperty(shapes, async ({ rows, columns, rank, n, seed, excluding, bounded, ordered }) => {
        const { matrix, bounds, order } = byNorm(randomMatrix(columns, rank, seed));
        const exclude = randomBlock(
          Array.from({ length: rows }, (_, row) => (row * seed) % columns),
          columns,
          seed,
        );
        const check = topNCheck({
          variant: 'any',
          rowFactors: randomMatrix(rows, rank, seed + 1),
          columnFactors: matrix,
          n,
          ...(bounded ? { bounds } : {}),
          ...(ordered ? { order } : {}),
          ...(excluding ? { exclude } : {}),
        });
        const { error, limit } = await check.run(gpu);
        expect(error).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 12, seed: 1 },
    );
  });

  it('lists do not depend on how rows are cut into tasks', async () => {
    const inputs = {
      matrices: { rowFactors: randomMatrix(150, 9, 1), columnFactors: randomMatrix(130, 9, 2) },
      blocks: {
        exclude: randomBlock(
          Array.from({ length: 150 }, (_, row) => row % 50),
          130,
          3,
        ),
      },
    };
    const lists = async (from: number, to: number) => {
      const { items, scores } = (await runHandler(gpu, topN, { from, to, rank: 9, n: 5 }, inputs)).partitions!
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
    const columnFactors = hostMatrix(200, 2, (row) => (row === 199 ? 100 : row < 64 ? 1 : 0));
    const bounds = Float32Array.from({ length: 25 }, (_, eight) => (eight < 8 ? 1.5 : 0.1));
    const rowFactors = hostMatrix(3, 2, () => 1);
    const best = async (vectors: Readonly<Record<string, Float32Array>>) => {
      const { partitions } = await runHandler(
        gpu,
        topN,
        { from: 0, to: 3, rank: 2, n: 1 },
        { matrices: { rowFactors, columnFactors }, vectors },
      );
      return [...partitions!.top.columns.items];
    };
    expect(await best({})).toEqual([199, 199, 199]);
    expect(await best({ bounds })).toEqual([0, 0, 0]);
  });

  it('top-n does nothing once it is cancelled', async () => {
    const inputs = { matrices: { rowFactors: randomMatrix(3, 4, 1), columnFactors: randomMatrix(5, 4, 2) } };
    const before = gpu.counters.counts.readbacks;
    await runHandler(gpu, topN, { from: 0, to: 3, rank: 4, n: 2 }, inputs, () => true);
    expect(gpu.counters.counts.readbacks).toBe(before);
  });
});
