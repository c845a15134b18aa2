/**
 * The same model, within float32, from every grid of R: parts beyond devices, and a fixed side in vertical
 * parts.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import { ALS, type AlsOptions, type Model, Session, SGD } from '../../../index.ts';
import { errorsOf, expectErrors, fitGrid } from '../../support/compared-grids.ts';
import { isDeep } from '../../support/deep.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';

const grids: Partial<AlsOptions>[] = [
  { partitionUsers: '1,4' },
  { partitionItems: '1,4' },
  { partitionUsers: '2,2', partitionItems: '2,2' },
  { partitionUsers: '4,1' },
  { partitionItems: '4,1' },
  { partitionUsers: '1,3', partitionItems: '3,5' },
];

const settings: [string, AlsOptions][] = [
  ['explicit, with biases', {}],
  ['explicit, without biases, by conjugate gradients', { biases: false, solver: 'cg', cgSteps: 30 }],
  ['non-negative', { nonnegative: true }],
  ['implicit', { implicitPrefs: true }],
  ['implicit, with the weights of iALS', { implicitPrefs: true, unobservedWeight: 0.1 }],
];

let session: Session;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2 });
});
afterAll(() => session.close());

const fit = (on: Session, options: AlsOptions): Promise<Model> =>
  fitGrid(on, { maxIter: 3, solver: 'cholesky', ...options });

describe('grids of ALS on a CPU', () => {
  it.each(settings)('%s', async (_, options) => {
    const expected = errorsOf(await fit(session, options));
    for (const grid of grids) {
      expectErrors(await fit(session, { ...options, ...grid }), expected, { grid });
    }
  });

  it('are in the plan, with p, q, places and tasks, and in the model', async () => {
    const model = await fit(session, { partitionUsers: '1,3', partitionItems: '3,5' });
    const plan = model.training!.plan;
    expect(plan.choices.grid).toMatchObject({
      users: { q: 3, fixed: 'parts' },
      items: { q: 5, fixed: 'whole' },
    });
    expect(stageNamed(plan, 'update-users')).toMatchObject({
      partitions: { p: 1, q: 3 },
      at: ['cpu', 'cpu', 'cpu'],
    });
    expect(stageNamed(plan, 'equations-items')).toMatchObject({ partitions: { p: 3, q: 5 } });
    expect(model.metadata.params).toMatchObject({ partitionUsers: '1,3', partitionItems: '3,5' });
  });
});

describe('grids of ALS on several devices', () => {
  it.each(isDeep ? [2, 4] : [2])('%i in the place of one CPU give the same model', async (fakeDevices) => {
    await using several = await Session.create({ device: 'cpu', workers: 2, fakeDevices });
    for (const [at, [name, options]] of settings.entries()) {
      const expected = errorsOf(await fit(session, options));
      // Each setting meets each grid on two devices or on four; one device has them all above.
      for (const grid of [{}, ...grids.slice(0, 5)].filter((_, k) => (at + k) % 2 === fakeDevices / 2 - 1)) {
        expectErrors(await fit(several, { ...options, ...grid }), expected, { name, grid });
      }
    }
  });
});

describe('more devices than rows', () => {
  const few = randomRatings(7, 2, 3, 5);
  const parts = { partitionUsers: '3,2', partitionItems: '2,3' };
  it.each<[string, (on: Session) => Promise<Model>]>([
    ['ALS', (on) => new ALS({ rank: 2, maxIter: 2, seed: 3 }).fit(on.from(ratingBatches(few)))],
    [
      'ALS from vertical parts',
      (on) => new ALS({ rank: 2, maxIter: 2, seed: 3, ...parts }).fit(on.from(ratingBatches(few))),
    ],
    [
      'ALS that exchanges vectors',
      (on) =>
        new ALS({ rank: 2, maxIter: 2, seed: 3, solver: 'cg', ...parts, partitionSums: 'vectors' }).fit(
          on.from(ratingBatches(few)),
        ),
    ],
    ['SGD', (on) => new SGD({ rank: 2, maxIter: 2, seed: 3 }).fit(on.from(ratingBatches(few)))],
  ])('train as on one: %s', async (name, train) => {
    await using four = await Session.create({ device: 'cpu', workers: 2, fakeDevices: 4 });
    const [one, several] = [await train(session), await train(four)];
    expect(
      new Set(stageNamed(several.training!.plan, name === 'SGD' ? 'sgd-epoch' : 'update-users').at).size,
    ).toBeLessThanOrEqual(3);
    const difference = Math.abs(
      several.training!.iterations.at(-1)!.trainRmse! - one.training!.iterations.at(-1)!.trainRmse!,
    );
    // Blocks of SGD on several devices are stepped in another order.
    expect(difference).toBeLessThan(name === 'SGD' ? 0.05 : 1e-4);
  });

  it('that come with their parts are refused where there are more of those', async () => {
    await expect(
      new ALS({ rank: 2, partitionItems: '1,4' }).fit(session.from(ratingBatches(few))),
    ).rejects.toThrow('partitionItems 1,4 has 4 parts of 3 items');
    await expect(
      new ALS({ rank: 2, partitionUsers: '4,2' }).fit(session.from(ratingBatches(few))),
    ).rejects.toThrow('partitionUsers 4,2 has 4 vertical parts of 3 items');
  });
});

describe('sums that add up inside groups of devices first', () => {
  it.each(isDeep ? ['2,2', '1,3'] : ['1,3'])('give the same model: groups of %s', async (partitionGroups) => {
    await using four = await Session.create({ device: 'cpu', workers: 2, fakeDevices: 4 });
    const parts = { partitionUsers: '4,4', partitionItems: '4,4', partitionGroups };
    for (const options of [
      {},
      { implicitPrefs: true },
      { solver: 'cg' as const, partitionSums: 'vectors' as const },
    ]) {
      const expected = errorsOf(
        await fit(session, { solver: 'cholesky', ...options, partitionSums: 'auto' }),
      );
      const model = await fit(four, { ...options, ...parts });
      expectErrors(model, expected, { options });
      const reduce = stageNamed(
        model.training!.plan,
        'partitionSums' in options ? 'reduce-products-items' : 'reduce-items',
      );
      expect(reduce.exchange).toContain('reduce-scatter in two phases');
    }
  });

  it('are those of as many devices', async () => {
    const parts = { partitionUsers: '2,2', partitionItems: '2,2' };
    await expect(fit(session, { ...parts, partitionGroups: '1,1' })).rejects.toThrow(
      'partitionGroups 1,1 has 2 devices in 2 groups, and 1 device computes',
    );
    await using three = await Session.create({ device: 'cpu', workers: 2, fakeDevices: 3 });
    await expect(fit(three, { ...parts, partitionGroups: '2,2' })).rejects.toThrow(
      'partitionGroups 2,2 has 4 devices in 2 groups, and 3 devices compute',
    );
  });
});

describe('partitions that no plan can have', () => {
  it.each(['equations', 'vectors'] as const)(
    'are refused where no grid for the devices has vertical parts: %s',
    async (partitionSums) => {
      await expect(fit(session, { solver: 'cg', partitionSums })).rejects.toThrow(
        `partitionSums ${partitionSums} acts only if a side is solved from vertical parts, and no grid for these devices has them`,
      );
    },
  );

  it.each<[AlsOptions, string]>([
    [{ partitionUsers: '2' }, 'partitionUsers must be two whole numbers from 1 on, p,q, got "2"'],
    [{ partitionItems: '0,2' }, 'partitionItems must be two whole numbers from 1 on'],
    [
      { partitionUsers: '3,2', partitionItems: '1,2' },
      'partitionUsers 3,2 has 3 vertical parts, but the items are solved in 2',
    ],
    [{ partitionGroups: '2,0' }, 'partitionGroups must be whole numbers from 1 on, got "2,0"'],
    [
      { partitionGroups: '2,2', partitionUsers: '1,4', partitionItems: '1,4' },
      'partitionGroups 2,2 acts only if a side is solved from vertical parts, and both partitions have 1',
    ],
    [
      { partitionSums: 'vectors', nonnegative: true },
      'partitionSums vectors cannot be used with exact solves',
    ],
    [
      { partitionUsers: '2,2', implicitPrefs: true, earlyStop: 1, earlyStopMetric: 'ndcg@10' },
      'partitionUsers cannot cut the items into vertical parts with earlyStopMetric, which ranks all items of implicit data at once',
    ],
  ])('are refused: %j', (options, message) => {
    expect(() => new ALS(options)).toThrow(message);
  });
});
