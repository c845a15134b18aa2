/** ALS at ranks above 512: against exact ALS, at any number of threads, and what it refuses. */
import { expect, it } from 'vitest';
import { CounterRandom } from '../../../engine/random.ts';
import { ALS, chooseTrainer, type Model, type Session, SGD } from '../../../index.ts';
import { sizedParams } from '../../../operators/als/als-params.ts';
import { checkAlsParams } from '../../../operators/als/params.ts';
import { secondsAlone } from '../../../operators/als/plan/cost.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { alsProblem } from '../../../operators/als/plan/problem.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { isDeep } from '../../support/deep.ts';
import { cpuInfo, gpuInfo } from '../../support/steps/small-problems.ts';

const random = new CounterRandom(5);
const rows = Array.from({ length: 3000 }, (_, k) => ({
  user: random.below(3 * k, 90),
  item: random.below(3 * k + 1, 70),
  rating: 1 + random.below(3 * k + 2, 5),
}));

type Params = ConstructorParameters<typeof ALS>[0];

async function fit<T>(
  params: Params,
  use: (model: Model, loss: number, session: Session) => T | Promise<T>,
  workers = 2,
): Promise<T> {
  const session = await cpuSession({ workers });
  let loss = NaN;
  const model = await new ALS(params).fit(session.fromRows(rows), {
    onEvent: (event) => {
      if (event.type === 'iteration') loss = event.loss;
    },
  });
  return await use(model, loss, session);
}

const lossOf = (params: Params) => fit(params, (_, loss) => loss);

it.each([{ biases: true }, { implicitPrefs: true }])(
  'reaches the loss of exact ALS, which more factors than items do not change: %o',
  async (params) => {
    const common = { ...params, maxIter: isDeep ? 20 : 10 };
    const exact = await lossOf({ ...common, rank: 128, solver: 'cholesky' });
    const large = await lossOf({ ...common, rank: 529 });
    expect(Math.abs(large / exact - 1)).toBeLessThan(1e-3);
  },
  60_000,
);

it('trains at rank 4,096, to no larger loss than at lower ranks', async () => {
  const losses = [];
  for (const rank of isDeep ? [64, 512, 2048, 4096] : [64, 4096])
    losses.push(await lossOf({ rank, maxIter: isDeep ? 8 : 4 }));
  for (let k = 1; k < losses.length; k++) expect(losses[k]).toBeLessThanOrEqual(losses[k - 1] * 1.001);
}, 60_000);

it.each([{ biases: true }, { implicitPrefs: true }])(
  'has the same bits for 1 and 2 threads: %o',
  async (params) => {
    const common = { ...params, rank: 600, maxIter: 2 };
    const lists = (model: Model) => model.recommendForAllUsers(5).collect();
    expect(await fit(common, lists, 1)).toEqual(await fit(common, lists, 2));
  },
);

it.each([{ biases: true }, { implicitPrefs: true }])('explains the score of a user: %o', async (params) => {
  const own = rows.filter(({ user }) => user === 7);
  await fit({ ...params, rank: 529, maxIter: isDeep ? 20 : 10 }, async (model) => {
    const { score, modelScore, base, contributions } = await model.explain(own, 3);
    const all = contributions.reduce((sum, { share }) => sum + share, base);
    expect(all).toBeCloseTo(score, 3);
    expect(modelScore ?? score).toBeCloseTo(score, 2);
  });
});

it('refuses what needs the equations of a row, and names CG', () => {
  expect(() => new ALS({ rank: 4097 })).toThrow('4,096');
  expect(() => new ALS({ rank: 513, solver: 'cholesky' })).toThrow('solver cg');
  expect(() => new ALS({ rank: 513, nonnegative: true })).toThrow('conjugate gradients');
  expect(() => new ALS({ rank: 513, partitionSums: 'equations' })).toThrow('no normal equations');
  expect(() => new SGD({ rank: 513 })).toThrow('Train by ALS');
});

it('is solved from vertical parts by vectors, and reaches the same loss', async () => {
  const common = { rank: 600, maxIter: 4 };
  const whole = await lossOf(common);
  const parts = await lossOf({ ...common, partitionItems: '2,3', partitionUsers: '3,2' });
  expect(Math.abs(parts / whole - 1)).toBeLessThan(1e-4);
});

it('is planned with the Gram matrix of implicit data, on a CPU and on a GPU', () => {
  const params = checkAlsParams({ rank: 4096, implicitPrefs: true });
  const planOn = (device: typeof cpuInfo) =>
    planAls({ users: 90, items: 70, ratings: 3000 }, params, { compute: [device], host: cpuInfo });
  expect(planOn(cpuInfo).memory.cpu).toBeGreaterThanOrEqual(4 * 4096 ** 2);
  expect(planOn(gpuInfo(0)).memory['gpu:0']).toBeGreaterThanOrEqual(4 * 4096 ** 2);
});

it('is estimated on a GPU by the bytes of θ, in proportion to the rank', () => {
  const profile = { users: 480_189, items: 17_770, ratings: 99_072_112 };
  const secondsOf = (given: Parameters<typeof checkAlsParams>[0]) => {
    const params = checkAlsParams({ biases: false, ...given });
    const devices = { compute: [gpuInfo(0)], host: cpuInfo };
    return secondsAlone(
      alsProblem(profile, sizedParams(params, profile), devices, undefined, {}),
      'users',
    )[0];
  };
  const [half, twice] = [1024, 2048].map((rank) => secondsOf({ rank }));
  expect(twice / half).toBeCloseTo(2, 1);
  expect(secondsOf({ rank: 1024, precision: 'f32' }) / half).toBeGreaterThan(1.7);
  expect(secondsOf({ rank: 1024, implicitPrefs: true })).toBeGreaterThan(half);
});

it('is chosen in place of SGD', async () => {
  const session = await cpuSession();
  const { trainer, reason } = await chooseTrainer(session.fromRows(rows), { rank: 600 });
  expect(trainer).toBeInstanceOf(ALS);
  expect(reason).toContain('above 512');
});
