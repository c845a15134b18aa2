/** ALS at ranks above 512 on a GPU, which never forms A: on the software adapter. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, type Dataset, type Model, Session } from '../../index.ts';
import { isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';

const rows = randomRatings(31, 40, 30, 600);

describe.skipIf(noGpu)('als at ranks above 512 on a GPU', () => {
  let cpu: Session;
  let gpu: Session;
  beforeAll(async () => {
    cpu = await Session.create({ device: 'cpu', workers: 2 });
    gpu = await Session.create({ device: 'gpu', workers: 1 });
  });
  afterAll(async () => {
    await cpu?.close();
    await gpu?.close();
  });

  const fit = (session: Session, options: AlsOptions): Promise<Model> =>
    new ALS({ maxIter: 2, seed: 5, ...options }).fit(session.from(ratingBatches(rows)));
  const lossOf = (model: Model) => model.training!.iterations.at(-1)!.loss;

  // Kernels are compiled for each rank, in seconds each, so that most tests have the same one.
  it.each<AlsOptions>([
    ...(isDeep
      ? ([
          { rank: 640, precision: 'f32' },
          { rank: 513, biases: false, precision: 'f32' },
          { rank: 528, precision: 'f16' },
        ] as const)
      : []),
    { rank: 528, implicitPrefs: true, precision: 'f32', cgSteps: 2, maxIter: 1 },
  ])('reach the loss of a CPU: %j', async (options) => {
    const { precision, ...common } = options;
    const [got, expected] = [await fit(gpu, options), await fit(cpu, common)];
    expect(Math.abs(lossOf(got) / lossOf(expected) - 1)).toBeLessThan(precision === 'f32' ? 1e-4 : 2e-3);
    expect(got.training!.plan.choices.users).toMatchObject({ variant: `vectors-${precision}` });
  });

  it.runIf(isDeep)('gives the same bits twice', async () => {
    const options = { rank: 528, implicitPrefs: true, cgSteps: 2, maxIter: 1 } as const;
    const lists = async () => (await fit(gpu, options)).recommendForAllUsers(5).collect();
    expect(await lists()).toEqual(await lists());
  });

  it.each<AlsOptions>([...(isDeep ? [{}] : []), { implicitPrefs: true, cgSteps: 2 }])(
    'is solved from vertical parts by vectors, to the same loss: %j',
    async (options) => {
      const common = { rank: 528, precision: 'f32', maxIter: 1, ...options } as const;
      const whole = lossOf(await fit(gpu, common));
      const parts = lossOf(await fit(gpu, { ...common, partitionItems: '2,3', partitionUsers: '3,2' }));
      expect(Math.abs(parts / whole - 1)).toBeLessThan(1e-4);
    },
  );

  it.runIf(isDeep)('serves such a model', async () => {
    const model = await fit(gpu, { rank: 528, precision: 'f16' });
    const [{ user, item }] = rows;
    const own = gpu.from(ratingBatches(rows.filter((row) => row.user === user)));
    const count = async (lists: Dataset) => (await lists.collect()).numRows;
    expect(await count(model.recommendForUsers([user], 3))).toBe(3);
    expect(await count(model.similarItems([item], 3))).toBe(3);
    const { rmse } = await model.evaluate(gpu.from(ratingBatches(rows)));
    expect(rmse).toBeCloseTo(model.training!.iterations.at(-1)!.trainRmse!, 3);
    const { model: folded } = await model.foldIn(own);
    expect(await count(folded.recommendForUsers([user], 3))).toBe(3);
  });
});
