/**
 * The same model, within float32, from every grid of R and every number of devices: parts beyond devices, a fixed side
 * in vertical parts, vectors that devices add up in each step of conjugate gradients, rows that every device solves,
 * and factors and ratings whose home is the host or files.
 */
import { describe, expect, it } from 'vitest';
import { dataSetName, sharedArray } from '../../../engine/partition.ts';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import { planDevices } from '../../../engine/run/devices.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { ALS, type AlsOptions, type Model, Session, SGD } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { rowShifts } from '../../../operators/als/implicit/weights.ts';
import { chooseKernels } from '../../../operators/als/kernel-choices.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import type { AlsGrid, SideGrid } from '../../../operators/als/plan/problem.ts';
import { trainAls } from '../../../operators/als/train.ts';
import { oneBlock, type RatingBlock } from '../../../operators/ratings/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { byPairs, everyNth, isDeep, product } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches, testRandom } from '../../support/ratings.ts';
import { alsProblem } from '../../support/steps/small-problems.ts';

const rows = randomRatings(51, 300, 200, 6000);
const test = randomRatings(52, 300, 200, 500);
const session = await cpuSession();

/** A model of rank 9; with explicit data by its errors on a validation set too. */
const fit = (on: Session, options: AlsOptions): Promise<Model> =>
  new ALS({ rank: 9, seed: 3, maxIter: 2, solver: 'cholesky', ...options }).fit(
    on.from(ratingBatches(rows)),
    options.implicitPrefs ? {} : { validation: on.from(ratingBatches(test)) },
  );

/** The errors of a model; for the loss, its logarithm. */
function errorsOf(model: Model): number[] {
  const { loss, trainRmse, testRmse } = model.training!.iterations.at(-1)!;
  return [1 + Math.log(loss), trainRmse, testRmse].filter((error) => error !== undefined);
}

/** Expects the errors within 1e-4. */
function expectErrors(model: Model, expected: readonly number[], named: object): void {
  errorsOf(model).forEach((value, at) =>
    expect(Math.abs(value - expected[at]), JSON.stringify(named)).toBeLessThan(1e-4),
  );
}

const settings: Readonly<Record<string, AlsOptions>> = {
  'with biases': { biasDamping: 3, regOffset: 0.5 },
  'without biases': { biases: false, cgSteps: 30 },
  'more steps than rows need': { cgSteps: 14 },
  'non-negative': { nonnegative: true },
  implicit: { implicitPrefs: true },
  'implicit, with the weights of iALS': { implicitPrefs: true, unobservedWeight: 0.1 },
};

/** Parts p,q of users and of items. With `2,1` each of two devices steps all rows. */
const grids = ['1,4 ', ' 1,4', '2,2 2,2', '4,1 ', ' 4,1', '1,3 3,5', '4,4 4,4', '2,1 ', ' 2,1'];
const sums = ['equations', 'vectors', 'partial-equations'] as const;

/** A sample by the number of devices, setting, kind of sums, and the sides that are cut. */
const cases = byPairs(
  product({ devices: [1, 2, 4], name: Object.keys(settings), grid: grids, sum: sums }).filter(
    ({ name, grid, sum }) =>
      sum === 'equations' ? !grid.includes('2,1') : name !== 'non-negative' && !/^ ?1,4 ?$/.test(grid),
  ),
  ({ devices, name, grid, sum }) => ({ devices, name, sum, cut: grid.replace(/\d,\d/g, 'cut') }),
);

const expected = new Map<string, readonly number[]>();

describe.each([1, 2, 4])('grids of ALS on %i devices in the place of one CPU', async (devices) => {
  const several = await cpuSession(devices === 1 ? {} : { fakeDevices: devices });

  it.each(cases.filter((one) => one.devices === devices))(
    'give the model of whole rows on one: $name, $grid, $sum',
    async ({ name, grid, sum }) => {
      const options: AlsOptions = { ...settings[name], solver: sum === 'equations' ? 'cholesky' : 'cg' };
      const key = `${name} ${options.solver}`;
      if (!expected.has(key)) expected.set(key, errorsOf(await fit(session, options)));
      const [users, items] = grid.split(' ');
      const model = await fit(several, {
        ...options,
        ...(users && { partitionUsers: users }),
        ...(items && { partitionItems: items }),
        ...(sum !== 'equations' && { partitionSums: sum }),
      });
      expectErrors(model, expected.get(key)!, { name, grid, sum });
    },
  );
});

it('a grid is in the plan, with p, q, places and tasks, and in the model', async () => {
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

/**
 * ALS of 90 users and 40 items drawn by a seed, by a grid: gives the last test RMSE, of implicit data the
 * logarithm of the last loss. `attributed`: the ratings are
 * attributes, too, those of each eighth row the same one.
 */
function smallAls(
  seed: number,
  attributed = false,
): (session: Session, options: AlsOptions, grid?: AlsGrid) => Promise<number> {
  const random = testRandom(seed);
  const rows = Array.from({ length: 90 }, () =>
    Array.from({ length: 40 }, (_, item) => item).filter(() => random() < 0.3),
  );
  const test = rows.map((row) => row.slice(0, 2));
  const data = alsProblem(rows, 40, test);
  const ratings = rows.flat().length;
  const sizes = { features: 8, entries: ratings };
  const profile = {
    users: 90,
    items: 40,
    ratings,
    testRatings: test.flat().length,
    ...(attributed && { attributes: { users: sizes, items: sizes } }),
  };
  const attributesOf = (block: RatingBlock): RatingBlock => ({
    ...block,
    ref: { name: dataSetName('attributes'), partition: 0, version: 0 },
    indices: sharedArray(Uint32Array, ratings).map((_, at) => block.indices[at] % sizes.features),
  });
  const attributes = attributed && {
    users: attributesOf(oneBlock(data.byUser)),
    items: attributesOf(oneBlock(data.byItem)),
  };
  return (session, options, grid) => {
    const params = sizedParams(
      checkAlsParams({ rank: 5, maxIter: 3, solver: 'cholesky', ...options }),
      profile,
    );
    const shifts = params.implicitPrefs
      ? {
          shifts: {
            users: rowShifts(oneBlock(data.byUser), 40, params),
            items: rowShifts(oneBlock(data.byItem), 90, params),
          },
        }
      : {};
    return Holdings.within(session.context(), async (ctx) => {
      const devices = planDevices(ctx.executor);
      const plan = planAls(profile, params, devices, await chooseKernels(profile, params, ctx), { grid });
      const { iterations } = await trainAls(
        {
          ...data,
          ...shifts,
          ...(attributes && { attributes }),
          ...(params.implicitPrefs ? { test: undefined } : {}),
        },
        params,
        { devices: devices.compute, plan: () => plan },
        ctx,
      );
      const { loss, testRmse } = iterations.at(-1)!;
      return testRmse ?? Math.log(loss);
    });
  };
}

const side = (q: number, more: Partial<SideGrid> = {}): SideGrid => ({
  q,
  fixed: 'whole',
  factors: 'device',
  ratings: 'device',
  ...more,
});

/** Grids whose factors and ratings come to the device part by part. */
const homes: Readonly<Record<string, AlsGrid>> = {
  'X at the host, in parts': { users: side(5, { fixed: 'parts', factors: 'host' }), items: side(1) },
  'X at the host, ratings staged': {
    users: side(5, { fixed: 'parts', factors: 'host', ratings: 'host' }),
    items: side(2, { ratings: 'host' }),
  },
  'both in files, ratings staged': {
    users: side(4, { fixed: 'parts', factors: 'spill', ratings: 'host' }),
    items: side(3, { fixed: 'parts', factors: 'spill', ratings: 'host' }),
  },
  'both in files, by vectors': {
    users: side(4, { fixed: 'parts', factors: 'spill', ratings: 'host', sums: 'vectors' }),
    items: side(3, { fixed: 'parts', factors: 'spill', ratings: 'host', sums: 'vectors' }),
  },
  'X in files, Θ on the device, by vectors': {
    users: side(4, { fixed: 'parts', factors: 'spill', sums: 'vectors' }),
    items: side(2, { fixed: 'parts', factors: 'device', sums: 'vectors' }),
  },
};

/** Grids of whole sides whose ratings come to the device part by part. */
const staged: Readonly<Record<string, AlsGrid>> = {
  'whole sides, ratings staged': { users: side(4, { ratings: 'host' }), items: side(3, { ratings: 'host' }) },
};

/** Grids with rows that every device solves, in place of an exchange. */
const commonOn = (devices: number): Readonly<Record<string, AlsGrid>> => ({
  'users, most of them': { users: side(devices + 1, { common: 0.8 }), items: side(devices) },
  'both sides, several parts a device': {
    users: side(2 * devices + 1, { common: 0.3 }),
    items: side(devices + 1, { common: 0.2 }),
  },
  'devices of different speed': {
    users: side(devices + 1, {
      common: 0.25,
      speeds: Array.from({ length: devices }, (_, n) => (2 * (n + 1)) / devices / (devices + 1)),
    }),
    items: side(devices),
  },
});

describe('homes of factors and ratings, and rows that every device solves, give the same model', () => {
  const small = smallAls(7);
  const drawn = smallAls(7, true);
  const both: AlsOptions[] = [{}, { implicitPrefs: true }];

  async function expectGrids(
    on: Session,
    options: AlsOptions,
    given: readonly (readonly [string, AlsGrid])[],
    errorOf = small,
  ) {
    const whole = await errorOf(session, { precision: 'f32', ...options });
    for (const [name, grid] of given)
      expect(
        Math.abs((await errorOf(on, { precision: 'f32', ...options }, grid)) - whole),
        name,
      ).toBeLessThan(1e-4);
  }

  it.each(both)('on a CPU, %j', async (options) => {
    await expectGrids(session, options, Object.entries(homes));
    await expectGrids(session, options, Object.entries(staged), drawn);
    for (const fakeDevices of isDeep ? [2, 4] : [2])
      for (const errorOf of [small, drawn])
        await expectGrids(
          await cpuSession({ fakeDevices }),
          options,
          Object.entries(commonOn(fakeDevices)),
          errorOf,
        );
  });

  it.skipIf(noGpu)('on GPUs', async () => {
    await using gpu = await Session.create({ device: 'gpu', workers: 1 });
    await expectGrids(gpu, {}, everyNth(Object.entries(homes), 5, 3));
    await using gpus = await Session.create({ device: 'gpu', workers: 1, fakeDevices: 2 });
    await expectGrids(gpus, {}, everyNth(Object.entries(commonOn(2)), 3, 1));
    await expectGrids(gpu, {}, Object.entries(staged), drawn);
    await expectGrids(gpus, {}, everyNth(Object.entries(commonOn(2)), 3, 1), drawn);
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
    const four = await cpuSession({ fakeDevices: 4 });
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
    const four = await cpuSession({ fakeDevices: 4 });
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
    const three = await cpuSession({ fakeDevices: 3 });
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
