/** Implicit ALS on a GPU: half-iterations and training, on the software adapter. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { halfIterationChecks, type HalfIterationShape } from '../../gpu/checks/half-iteration.check.ts';
import type { Gpu } from '../../gpu/webgpu/gpu.ts';
import { ALS, type AlsOptions, type Model, Session } from '../../index.ts';
import { everyNth, isDeep } from '../support/deep.ts';
import { noGpu, openTestGpu } from '../support/gpu/open-gpu.ts';
import { distinctRatings, factorsById } from '../support/implicit.ts';
import { ratingBatches } from '../support/ratings.ts';
import { referencePredict } from '../support/reference/als.ts';
import { referenceImplicit, referenceImplicitLoss } from '../support/reference/implicit.ts';

const shapes: readonly HalfIterationShape[] = [
  { rank: 10, solver: 'cg', alpha: 3 },
  { rank: isDeep ? 40 : 20, solver: 'cholesky', alpha: 3 },
  { rank: 20, solver: 'nonnegative', alpha: 3 },
  ...(isDeep
    ? ([
        { rank: 40, solver: 'cg', alpha: 40 },
        { rank: 10, solver: 'cholesky', alpha: 0 },
      ] as const)
    : []),
];

describe.skipIf(noGpu)('half-iterations of implicit data on a GPU', () => {
  let gpu: Gpu;
  beforeAll(async () => {
    gpu = await openTestGpu();
  });
  afterAll(() => gpu?.close());

  it.each(shapes)('agree with their twin by variants: %j', async (shape) => {
    const checks = halfIterationChecks(gpu.info, 1000, [shape]);
    expect(checks.length).toBeGreaterThan(1);
    for (const { variant, run } of everyNth(checks, 4, shapes.indexOf(shape))) {
      const { error, limit } = await run(gpu);
      expect(error, variant).toBeLessThanOrEqual(limit);
    }
  });
});

describe.skipIf(noGpu)('implicit als on a GPU', () => {
  let session: Session;
  beforeAll(async () => {
    session = await Session.create({ device: 'gpu', workers: 1 });
  });
  afterAll(() => session?.close());

  const rows = distinctRatings(5, 60, 40, 700).map((row, i) =>
    i % 9 === 4 ? { ...row, rating: -row.rating } : row,
  );
  const fit = (options: AlsOptions): Promise<Model> =>
    new ALS({ implicitPrefs: true, weight: 'spark', solver: 'cholesky', seed: 3, ...options }).fit(
      session.from(ratingBatches(rows)),
    );

  it.each([
    { regParam: 0.05, alpha: 3 },
    { regParam: 0.01, alpha: 1, unobservedWeight: 0.1 },
    ...(isDeep ? [{ regParam: 0.1, alpha: 0 }] : []),
  ])('predicts what a dense float64 reference predicts, and reports its loss, %j', async (form) => {
    for (const rank of isDeep ? [5, 18] : [form.alpha === 1 ? 18 : 5]) {
      const [first, model] = [
        await fit({ ...form, rank, maxIter: 1 }),
        await fit({ ...form, rank, maxIter: 3 }),
      ];
      const got = { users: factorsById(model.userFactors), items: factorsById(model.itemFactors) };
      const expected = referenceImplicit(rows, factorsById(first.userFactors), form, 2);
      for (const user of got.users.keys())
        for (const item of got.items.keys())
          expect(
            Math.abs(referencePredict(got, user, item) - referencePredict(expected, user, item)),
          ).toBeLessThanOrEqual(1e-5);
      expect(model.training!.iterations.at(-1)!.loss / referenceImplicitLoss(rows, got, form)).toBeCloseTo(
        1,
        5,
      );
    }
  });

  it('refuses float16 where the weights leave no room for it', () => {
    expect(() => new ALS({ implicitPrefs: true, alpha: 0, precision: 'f16' })).toThrow(
      'precision f16 cannot be used with alpha 0',
    );
  });
});
