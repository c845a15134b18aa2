/**
 * A GPU whose memory cannot hold the ratings, on the software adapter: they are uploaded from host memory or
 * from files, two parts at a time.
 */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALS, CapacityError, type Model, Session, type SessionOptions } from '../../index.ts';
import { baseBytes } from '../../operators/planner/memory-budget.ts';
import { isDeep } from '../support/deep.ts';
import { noGpu } from '../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../support/ratings.ts';
import { sharedSession } from '../support/shared-sessions.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const rows = randomRatings(81, 700, 300, 60_000);
const held = randomRatings(82, 700, 300, 500);
/** Few rows, so that the finest grid, a row a part, is planned and run quickly. */
const few = randomRatings(84, 15, 10, 80);
/** More than the smallest part in a file has. */
const many = randomRatings(83, 2500, 1500, 400_000);

const folder = temporaryFolder();

const factorsOf = (model: Model) =>
  [model.userFactors, model.itemFactors].map(
    (batch) => batch.data.children[1].children[0].values as Float32Array,
  );

const onGpu = { device: 'gpu', workers: 1 } as const;

const fit = (session: Session, ratings = rows, maxIter = 2): Promise<Model> =>
  new ALS({ rank: 4, maxIter, seed: 5, solver: 'cholesky' }).fit(session.from(ratingBatches(ratings)), {
    validation: session.from(ratingBatches(held)),
  });

/** Trains without limits of memory, in a session that all tests share: its kernels are compiled once. */
const trainWhole = async (ratings = rows, maxIter = 2) => fit(await sharedSession(onGpu), ratings, maxIter);

async function train(options: SessionOptions, ratings = rows, maxIter = 2): Promise<Model> {
  await using session = await Session.create({ ...onGpu, ...options });
  return await fit(session, ratings, maxIter);
}

function expectSame(got: Model, expected: Model): void {
  const furthest = factorsOf(expected).map((values, side) =>
    values.reduce((most, value, i) => Math.max(most, Math.abs(value - factorsOf(got)[side][i])), 0),
  );
  expect(Math.max(...furthest)).toBeLessThan(2e-3);
  const [last, lastExpected] = [got, expected].map((model) => model.training!.iterations.at(-1)!);
  expect(last.loss / lastExpected.loss).toBeCloseTo(1, 4);
}

describe.skipIf(noGpu)('a GPU with less memory than the ratings take', () => {
  it('is given them part by part from host memory, and holds no more than was walked', async () => {
    const whole = await trainWhole();
    const need = whole.training!.plan.memory['gpu:0'];
    const deviceMemory = Math.floor(0.2 * need);
    const staged = await train({ deviceMemory });
    const { plan } = staged.training!;
    expect(plan.choices.grid).toMatchObject({ users: { ratings: 'host' } });
    expect(plan.memory['gpu:0']).toBeLessThanOrEqual(deviceMemory);
    // Each iteration uploads the ratings again.
    const brought = plan.round.reduce((sum, { name }) => sum + (plan.measured![name]?.bytesUp ?? 0), 0);
    expect(brought).toBeGreaterThan(2 * 2 * 8 * 50_000);
    expectSame(staged, whole);
  });

  it.runIf(isDeep)('is refused where no grid fits, with the least that works', async () => {
    const failed = train({ deviceMemory: 500 }, few);
    await expect(failed).rejects.toThrow(CapacityError);
    const least = await failed.then(
      () => 0,
      ({ message }: Error) =>
        Number(/the least that a device needs is [\d.]+ \w+ \((\d+) bytes\),/.exec(message)?.[1]),
    );
    expect(least).toBeGreaterThan(500);
    // The walk does not yet count test pairs, or kernels with their lists.
    const deviceMemory = Math.ceil(1.25 * least);
    const [whole, finest] = [await trainWhole(few, 1), await train({ deviceMemory }, few, 1)];
    expect(finest.training!.plan.choices.grid).toMatchObject({
      users: { factors: 'host', ratings: 'host' },
      items: { factors: 'host', ratings: 'host' },
    });
    expect(finest.training!.plan.memory['gpu:0']).toBeLessThanOrEqual(deviceMemory);
    expectSame(finest, whole);
  });

  it('is given them from files where host memory does not hold them either, which are gone at the end', async () => {
    const [whole, spilled] = [
      await trainWhole(many, 1),
      await train({ memoryBudget: baseBytes(1), spillDir: folder }, many, 1),
    ];
    expect(spilled.training!.plan.choices.grid).toMatchObject({
      users: { ratings: 'spill' },
      items: { ratings: 'spill' },
    });
    expect(spilled.training!.plan.datasets.find(({ name }) => name === 'ratings-by-user')?.parts.length).toBe(
      2,
    );
    expect(spilled.training!.plan.memory['gpu:0']).toBeLessThan(whole.training!.plan.memory['gpu:0']);
    expectSame(spilled, whole);
    expect(readdirSync(folder)).toEqual([]);
  });
});
