/**
 * Training whose long rows are solved tile by tile: the same model from any number of threads, parts, homes
 * of the ratings and devices.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { sliceKeys } from '../../../engine/keys/key-column.ts';
import { dataSetName } from '../../../engine/partition.ts';
import { stageNamed } from '../../../engine/plan/physical-plan.ts';
import { SPILL } from '../../../engine/plan/place.ts';
import { andThen } from '../../../engine/stream/logical-plan.ts';
import { ALS, type AlsOptions, type Model, Session } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { RowSolver } from '../../../operators/als/rows/row-solver.ts';
import { baseBytes } from '../../../operators/planner/memory-budget.ts';
import { rowsOfBlock } from '../../../operators/ratings/ratings.ts';
import { readRatings } from '../../../operators/ratings/reading/read-ratings.ts';
import { SelectRatings } from '../../../operators/ratings/rows/select-ratings.ts';
import { sortedBlocks } from '../../support/blocks.ts';
import { everyNth, isDeep } from '../../support/deep.ts';
import { ratingBatches, testRandom, type Triple } from '../../support/ratings.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { cpuSession } from '../../support/cpu-session.ts';

const USERS = 70_000;

/**
 * Each user rates three of 90 items, most of them the first one, and 2,000 users one of ten others, which
 * have too few ratings for the tiling.
 */
const rows: Triple[] = (() => {
  const random = testRandom(9);
  return Array.from({ length: USERS }, (_, user) => {
    const items = new Set<number>();
    while (items.size < 3) items.add(Math.floor(random() ** 12 * 90));
    if (user < 2000) items.add(90 + (user % 10));
    return [...items].map((item) => ({
      user,
      item,
      rating: 3 + Math.sin(user) * Math.cos(item * 5) + random(),
    }));
  }).flat();
})();
const ratings = ratingBatches(rows, 50_000);
const swapped = ratingBatches(
  rows.map(({ user, item, rating }) => ({ user: item, item: user, rating })),
  50_000,
);

const folder = temporaryFolder();
const session = await cpuSession({ workers: 1 });

const base = { rank: 64, seed: 3, maxIter: 1, solver: 'cg', cgSteps: 3 } as const;
const settings: [string, AlsOptions][] = [
  ['without biases', { biases: false }],
  ['with biases', { biases: true }],
];

const fit = (options: AlsOptions, on = session, from = ratings): Promise<Model> =>
  new ALS({ ...base, ...options }).fit(on.from(from));

/** The tiling of a side's rows in a plan. */
function tilingIn(model: Model, side: 'users' | 'items') {
  const { work } = stageNamed(model.training!.plan, `update-${side}`);
  return work?.kind === 'tasks' ? work.tasks[0].params?.tiled : undefined;
}

/** Both sides with their biases. */
const bytesOf = (model: Model) =>
  [model.userArrays, model.itemArrays].map(({ values }) =>
    Buffer.from(values.buffer, values.byteOffset, values.byteLength),
  );

function expectSameBits(model: Model, expected: Model): void {
  bytesOf(model).forEach((bytes, side) =>
    expect(bytes.equals(bytesOf(expected)[side]), side === 0 ? 'users' : 'items').toBe(true),
  );
}

const lossesOf = (model: Model) => model.training!.iterations.map(({ loss }) => loss);

function expectSameLoss(model: Model, expected: Model, within: number): void {
  lossesOf(model).forEach((loss, k) =>
    expect(Math.abs(loss / lossesOf(expected)[k] - 1)).toBeLessThan(within),
  );
}

const tiling = { from: 276, to: 2.2e6, tileRows: 1024 };

describe.each(everyNth(settings, 2, 1))('long rows solved tile by tile, %s', (_, options) => {
  let expected: Model;
  beforeAll(async () => {
    expected = await fit(options);
  });

  it('are those of one side, and in the plan', () => {
    const lengths = new Float64Array(100);
    for (const { item } of rows) lengths[item]++;
    expect(Math.min(...lengths)).toBeLessThan(tiling.from);
    expect(Math.max(...lengths)).toBeGreaterThan(65_536);
    expect(tilingIn(expected, 'items')).toEqual(tiling);
    expect(tilingIn(expected, 'users')).toBeUndefined();
    const named = (side: 'users' | 'items') =>
      stageNamed(expected.training!.plan, `update-${side}`).reasons?.some((reason) =>
        reason.includes('276 ratings'),
      ) ?? false;
    expect([named('users'), named('items')]).toEqual([false, true]);
  });

  it('give the same bits for another number of workers', async () => {
    const three = await cpuSession({ workers: 3 });
    const model = await fit(options, three);
    expectSameBits(model, expected);
    expect(lossesOf(model)).toEqual(lossesOf(expected));
  });

  it('give the same bits in parts, and the same model from sums over vertical parts', async () => {
    const parts = await fit({ ...options, partitionUsers: '1,3', partitionItems: '1,4' });
    expect(stageNamed(parts.training!.plan, 'update-items').partitions).toEqual({ p: 1, q: 4 });
    expect(tilingIn(parts, 'items')).toEqual(tiling);
    expectSameBits(parts, expected);
    // Rows are solved from their formed A there.
    const vertical = await fit({ ...options, partitionUsers: '2,2', partitionItems: '2,2' });
    expect(tilingIn(vertical, 'items')).toBeUndefined();
    expectSameLoss(vertical, expected, 1e-4);
  });

  it('give the same bits on two devices', async () => {
    const two = await cpuSession({ fakeDevices: 2 });
    const model = await fit(options, two);
    expect(new Set(stageNamed(model.training!.plan, 'update-items').at).size).toBe(2);
    expectSameBits(model, expected);
  });

  it('tell the loss of the users, where those are long', async () => {
    // Ratings that are all but reproduced have a pass for their loss.
    const held = { ...options, regParam: 1 };
    const [one, two] = [
      await fit(held, session, swapped),
      await fit({ ...held, maxIter: 2 }, session, swapped),
    ];
    expect(tilingIn(one, 'users')).toEqual(tiling);
    const [told] = two.training!.iterations;
    const [passed] = one.training!.iterations;
    expect([told.fromSolve, passed.fromSolve]).toEqual([true, undefined]);
    expect(Math.abs(told.loss / passed.loss - 1)).toBeLessThan(2e-6);
    expect(Math.abs(told.trainRmse! / passed.trainRmse! - 1)).toBeLessThan(2e-6);
  });
});

describe.runIf(isDeep)('ratings in files', () => {
  it.each(
    everyNth(
      [
        ['items', ratings],
        ['users', swapped],
      ] as const,
      2,
    ),
  )('give the same bits, of long %s', async (side, once) => {
    const many = [once, once, once, once].flat();
    await using small = await Session.create({
      device: 'cpu',
      workers: 1,
      spillDir: folder,
      memoryBudget: baseBytes(1) + 44 * 2 ** 20,
    });
    const [whole, parts] = [await fit({}, session, many), await fit({}, small, many)];
    expect(whole.training!.plan.memory[SPILL]).toBeUndefined();
    expect(parts.training!.plan.memory[SPILL]).toBeGreaterThan(16 * 4 * rows.length);
    expect(tilingIn(parts, side)).toEqual(tiling);
    expectSameBits(parts, whole);
    expect(lossesOf(parts)).toEqual(lossesOf(whole));
  });
});

describe('blocks of rows', () => {
  it('have the bits of training where their columns are those of all ratings', async () => {
    const options = { ...base, maxIter: 1 };
    const params = sizedParams(ALS.spark(options).params, { users: 1, items: 1, ratings: 1 });
    const model = await ALS.spark(options).fit(session.from(ratings));
    expect(tilingIn(model, 'items')).toEqual(tiling);
    const ctx = session.context();
    const indexed = await readRatings(
      andThen(
        session.from(ratings).plan,
        new SelectRatings({ user: 'user', item: 'item', rating: 'rating' }),
      ),
      {},
      ctx,
    );
    const { byUser, byItem } = await sortedBlocks(indexed, 'keep', ctx);
    const ofUsers = new RowSolver(byUser, { keys: indexed.users, columns: 100, unit: 1 }, params, ctx);
    await ofUsers.place();
    const start = await ofUsers.start(0);
    await ofUsers.forget();
    const { values } = model.itemArrays;
    for (const [from, to] of [
      [0, 100],
      [0, 37],
      [37, 100],
    ]) {
      const block = rowsOfBlock(byItem, from, to, { name: dataSetName('block'), partition: 0, version: 0 });
      const solver = new RowSolver(
        block,
        { keys: sliceKeys(indexed.items, from, to), columns: USERS, unit: 1 },
        params,
        ctx,
      );
      await solver.place();
      solver.fix(start);
      const solved = await solver.solve(1, { fromZeros: true });
      expect(solved).toEqual(values.slice(from * 64, to * 64));
      await solver.forget();
    }
  });
});
