/**
 * More ratings than one block can hold are trained on in parts in memory, and give the same model as one
 * block with the same grid.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hostMeter } from '../../../engine/run/memory-meter.ts';
import { ALS, type AlsOptions, CapacityError, type Model, Session } from '../../../index.ts';
import { type AlsGrid, type Side, verticalParts } from '../../../operators/als/plan/problem.ts';
import { blockLimit } from '../../../operators/planner/sizes.ts';
import { everyNth } from '../../support/deep.ts';
import { noGpu } from '../../support/gpu/open-gpu.ts';
import { randomRatings, ratingBatches } from '../../support/ratings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { factorsOf } from '../../support/model-values.ts';

let session = await cpuSession();

const rows = [...randomRatings(5, 300, 200, 9000), ...randomRatings(6, 300, 200, 300)];
const held = randomRatings(7, 300, 200, 500);
const usual = blockLimit.ratings;

afterEach(() => {
  blockLimit.ratings = usual;
});

async function fit(limit: number, options: AlsOptions): Promise<Model> {
  blockLimit.ratings = limit;
  return await new ALS({ rank: 6, maxIter: 2, seed: 3, ...options }).fit(
    session.from(ratingBatches(rows)),
    options.implicitPrefs ? {} : { validation: session.from(ratingBatches(held)) },
  );
}

const gridOf = (model: Model) => model.training!.plan.choices.grid as AlsGrid;

/** The same grid of one block. */
async function fitOneBlock(grid: AlsGrid, options: AlsOptions): Promise<Model> {
  const asked = (side: Side) => `${verticalParts(grid, side)},${grid[side].q}`;
  const model = await fit(usual, {
    ...options,
    partitionUsers: asked('users'),
    partitionItems: asked('items'),
  });
  for (const side of ['users', 'items'] as const)
    expect(gridOf(model)[side]).toMatchObject({ q: grid[side].q, fixed: grid[side].fixed });
  return model;
}

/** Settings with vertical parts of users, of items and of both; without, the planner chooses horizontal parts. */
const cases: [string, AlsOptions, Partial<AlsOptions>][] = [
  ['explicit, with biases', {}, {}],
  ['explicit, with biases', {}, { partitionItems: '4,3' }],
  [
    'explicit, without biases, with an offset of the penalty and another power',
    { biases: false, regOffset: 0.5, regExponent: 0.5 },
    { partitionUsers: '2,4', partitionItems: '4,2' },
  ],
  ['implicit', { implicitPrefs: true }, { partitionItems: '5,1' }],
  ['by conjugate gradients', { solver: 'cg' }, { partitionUsers: '2,4', partitionItems: '4,2' }],
];

function expectSame(parts: Model, whole: Model): void {
  expect(factorsOf(parts)).toEqual(factorsOf(whole));
  const [got, expected] = [parts, whole].map(({ training }) =>
    training!.iterations.map(({ loss, trainRmse, testRmse }) => [loss, trainRmse, testRmse]),
  );
  // The mean of the ratings is summed over slices of each part, so the last bit of an error in float64 may
  // differ.
  got.forEach((measures, iteration) =>
    measures.forEach((value, k) => {
      const whole = expected[iteration][k];
      if (value === undefined || whole === undefined) expect(value).toBe(whole);
      else expect(Math.abs(value / whole - 1)).toBeLessThan(1e-12);
    }),
  );
}

describe('more ratings than a block has, on a CPU', () => {
  it.each(cases)('%s, %j, %j', async (_, options, asked) => {
    const parts = await fit(2500, { ...options, ...asked });
    const grid = gridOf(parts);
    expect(grid.users.q).toBeGreaterThanOrEqual(4);
    expectSame(parts, await fitOneBlock(grid, options));
  });

  it('have repeated pairs treated by the policy, part by part', async () => {
    const options = { onDuplicates: 'mean' } as const;
    const [parts, whole] = [await fit(2500, options), await fit(usual, options)];
    expect(parts.training!.ratings).toBe(whole.training!.ratings);
    expect(parts.training!.iterations.at(-1)!.loss / whole.training!.iterations.at(-1)!.loss).toBeCloseTo(
      1,
      5,
    );
  });

  it('are in a plan with its estimate', async () => {
    const model = await fit(2500, { partitionItems: '4,3' });
    const { plan } = model.training!;
    expect(plan.estimate?.seconds).toBeGreaterThan(0);
    expect(plan.rejected?.length).toBeGreaterThan(0);
    const ratings = plan.datasets
      .filter(({ name }) => name.startsWith('ratings-by-'))
      .map(({ parts }) => parts.length);
    expect(ratings).toEqual([4, 12]);
    expect(gridOf(model)).toMatchObject({
      users: { q: 4, ratings: 'device' },
      items: { q: 3, ratings: 'device' },
    });
  });

  it('are refused for rankings while training, where they must be one block', async () => {
    await expect(fit(2500, { earlyStop: 1, earlyStopMetric: 'ndcg@5' })).rejects.toThrow(CapacityError);
  });
});

describe.skipIf(noGpu)('more ratings than a block has, on a GPU', () => {
  beforeAll(async () => {
    session = await Session.create({ device: 'gpu', workers: 1 });
  });
  afterAll(() => session.close());

  it.each(everyNth([cases[3], cases[0], cases[1]], 3))('%s, %j, %j', async (_, options, asked) => {
    const parts = await fit(2500, { ...options, ...asked });
    expectSame(parts, await fitOneBlock(gridOf(parts), options));
  });

  it('leave host memory before the first iteration, and are there again for the next fit', async () => {
    const bytes = 2 * 8 * rows.length;
    const held = async (limit: number) => {
      blockLimit.ratings = limit;
      const seen: number[] = [];
      const model = await new ALS({ rank: 6, maxIter: 3, seed: 3, partitionItems: '5,1' }).fit(
        session.from(ratingBatches(rows)),
        { onEvent: (event) => void (event.type === 'iteration' && seen.push(hostMeter.now)) },
      );
      return { seen, factors: factorsOf(model) };
    };
    const [parts, again, whole] = [await held(2500), await held(2500), await held(usual)];
    expect(again.factors).toEqual(parts.factors);
    expect(parts.seen).toHaveLength(3);
    for (const now of parts.seen) expect(now).toBeLessThan(bytes);
    for (const now of whole.seen) expect(now).toBeGreaterThan(bytes);
  });
});
