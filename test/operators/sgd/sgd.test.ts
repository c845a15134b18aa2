import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stepInOrder } from '../../../cpu/reference/sgd.ts';
import { type Dataset, type Model, Session, SGD, type SgdOptions } from '../../../index.ts';
import { plantedRatings } from '../../support/planted.ts';
import { randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';
import { undamped } from '../../support/settings.ts';

let session: Session;

beforeAll(async () => {
  session = await Session.create({ workers: 2, device: 'cpu' });
});

afterAll(() => session.close());
const dataset = (rows: readonly Triple[], of = session): Dataset => of.from(ratingBatches(rows, 997));

const fit = (rows: readonly Triple[], options: SgdOptions, of = session): Promise<Model> =>
  new SGD(options).fit(dataset(rows, of));

const factors = (batch: Model['userFactors']) => batch.data.children[1].children[0].values as Float32Array;
const rmse = async (model: Model, rows: readonly Triple[]) => (await model.evaluate(dataset(rows))).rmse;
const schedules = ['hogwild', 'wavefront', 'blocks'] as const;
const rates = ['paper', 'constant', 'bold', 'adagrad'] as const;

describe.each(schedules)('sgd by %s', (schedule) => {
  it.each(rates)('finds planted factors and biases with the rate %s', async (rate) => {
    const rows = plantedRatings(3, 300, 200, 20_000);
    const [train, test] = [rows.slice(1500), rows.slice(0, 1500)];
    // Each schedule and each rate has both.
    const biases = (schedules.indexOf(schedule) + rates.indexOf(rate)) % 2 === 0;
    const model = await fit(train, {
      ...(biases ? undamped : { biases }),
      rank: biases ? 4 : 6,
      schedule,
      rate,
      regParam: 0.02,
      learningRate: { paper: 0.15, adagrad: 0.2, constant: 0.03, bold: 0.03 }[rate],
      maxIter: 40,
    });
    // The noise is 0.3, the ratings' deviation about 0.9.
    expect(await rmse(model, test)).toBeLessThan(biases ? 0.4 : 0.45);
  });

  it('steps every rating exactly once an epoch', async () => {
    // With one item each, a user's bias after one epoch at a rate of 1 / 2 shows how often its rating was
    // stepped, in any order.
    const rows = Array.from({ length: 3000 }, (_, i): Triple => ({
      user: i,
      item: i,
      rating: i % 2 === 0 ? 2 : 4,
    }));
    const model = await fit(rows, {
      ...undamped,
      rank: 1,
      schedule,
      rate: 'constant',
      learningRate: 0.25,
      regParam: 0,
      maxIter: 1,
    });
    // On the scale of the deviation, 1: e is 1 up to the small product of the start; one step adds 1 / 4 to β
    // and γ.
    const beta = Array.from({ length: 3000 }, (_, u) => Math.abs(factors(model.userFactors)[3 * u + 1] - 3));
    for (const value of beta) expect(value).toBeCloseTo(0.25, 1);
  });

  it('reports losses that its model has, and visits all ratings in each epoch', async () => {
    const rows = plantedRatings(5, 200, 300, 9000);
    const model = await fit(rows, { rank: 5, biases: true, schedule, regParam: 0.05, maxIter: 6 });
    const { iterations = [], plan, params } = model.training ?? {};
    expect(iterations).toHaveLength(6);
    expect(await rmse(model, rows)).toBeCloseTo(iterations[5].trainRmse!, 4);
    expect(iterations[5].loss).toBeLessThan(iterations[0].loss);
    expect(plan?.measured?.['sgd-epoch']?.rows).toBeGreaterThanOrEqual(6 * rows.length);
    expect(params).toMatchObject({ schedule, learningRate: 0.08 });
  });
});

describe('sgd', () => {
  it.each(['wavefront', 'blocks'] as const)(
    'by %s gives the same bits for permuted rows, a seed and a number of workers',
    async (schedule) => {
      for (const options of [{ biases: true }, { biases: false, rate: 'adagrad' }] as const) {
        const rows = randomRatings(23, 300, 150, 9000);
        const all = { rank: 7, maxIter: 3, seed: 4, schedule, ...options };
        const first = await fit(rows, all);
        const second = await fit(shuffled(rows, 9), all);
        expect(factors(second.userFactors)).toEqual(factors(first.userFactors));
        expect(factors(second.itemFactors)).toEqual(factors(first.itemFactors));
        const other = await fit(rows, { ...all, seed: 5 });
        expect(factors(other.itemFactors)).not.toEqual(factors(first.itemFactors));
      }
    },
  );

  it('by blocks gives the same bits for 1, 2 and 4 workers, which share a grid', async () => {
    const rows = randomRatings(29, 250, 400, 9000);
    const options = { rank: 6, maxIter: 3, biases: true } as const;
    const first = factors((await fit(rows, options)).userFactors);
    for (const workers of [1, 4]) {
      await using other = await Session.create({ workers, device: 'cpu' });
      expect(factors((await fit(rows, options, other)).userFactors)).toEqual(first);
    }
  });

  it('by hogwild with many workers is within 0.002 of sequential SGD in float64', async () => {
    const rows = plantedRatings(31, 800, 600, 40_000);
    const [train, test] = [rows.slice(3000), rows.slice(0, 3000)];
    const options = {
      ...undamped,
      rank: 4,
      regParam: 0.05,
      learningRate: 0.03,
      maxIter: 30,
      schedule: 'hogwild',
    } as const;
    const sequential = sequentialRmse(train, test, 4, 0.05, 0.03, 30);
    await using many = await Session.create({ workers: 4, device: 'cpu' });
    const model = await fit(train, options, many);
    expect(Math.abs((await rmse(model, test)) - sequential)).toBeLessThan(0.002);
  });

  it('takes the λ of each side for its own rows', async () => {
    const rows = plantedRatings(7, 120, 90, 4000);
    const norm = (values: Float32Array) => Math.hypot(...values);
    const [small, users, items] = await Promise.all(
      [{ regParam: 0.01 }, { regParam: 0.01, regParamUsers: 1 }, { regParam: 0.01, regParamItems: 1 }].map(
        (lambda) => fit(rows, { rank: 3, ...lambda }),
      ),
    );
    // Products must stay near the ratings, so what one side loses the other gains.
    expect(norm(factors(users.userFactors))).toBeLessThan(norm(factors(small.userFactors)));
    expect(norm(factors(items.itemFactors))).toBeLessThan(norm(factors(small.itemFactors)));
  });

  it('does not depend on the unit of the ratings', async () => {
    const rows = plantedRatings(11, 150, 100, 5000);
    const options = { rank: 4, biases: true, maxIter: 5 };
    const one = await fit(rows, { ...options, regParam: 0.05 });
    const hundred = await fit(
      rows.map((row) => ({ ...row, rating: 64 * row.rating })),
      { ...options, regParam: 64 * 0.05 },
    );
    const [a, b] = [one, hundred].map((model) => model.training?.iterations.at(-1)?.trainRmse as number);
    expect(b / 64).toBeCloseTo(a, 4);
  });

  it.each([
    ['more items than users', randomRatings(13, 40, 400, 3000)],
    ['one user', randomRatings(13, 1, 400, 3000)],
    ['one item', randomRatings(13, 400, 1, 3000)],
    ['one rating', [{ user: 1, item: 2, rating: 4 }]],
    ['ratings that are all alike', randomRatings(13, 30, 40, 300).map((row) => ({ ...row, rating: 4 }))],
    ['ratings of 0 only', randomRatings(13, 30, 40, 300).map((row) => ({ ...row, rating: 0 }))],
    ['negative ratings', randomRatings(13, 30, 40, 300).map((row) => ({ ...row, rating: -row.rating }))],
  ])('trains on %s', async (_, rows) => {
    for (const schedule of schedules) {
      for (const biases of [true, false]) {
        const model = await fit(rows, { rank: 3, biases, schedule, maxIter: 10, regParam: 0.01 });
        expect(factors(model.userFactors).every(Number.isFinite)).toBe(true);
        const { iterations = [] } = model.training ?? {};
        expect(iterations[9].loss).toBeLessThanOrEqual(iterations[0].loss * 1.05 + 1e-6);
      }
    }
  });

  it('names the pair of a repeated rating by its external ids, whichever side is the rows', async () => {
    for (const [users, items] of [
      [5, 90],
      [90, 5],
    ]) {
      const rows = randomRatings(3, users, items, 60);
      const { user, item } = rows[7];
      await expect(new SGD({ onDuplicates: 'error' }).fit(dataset([...rows, rows[7]]))).rejects.toThrow(
        `the first pair: user ${user}, item ${item}`,
      );
    }
  });

  it('stops early, keeps the best epoch, and reaches a target', async () => {
    const rows = plantedRatings(17, 120, 100, 3000, { noise: 0.8 });
    const [train, validation] = [rows.slice(600), rows.slice(0, 600)];
    const overfit = {
      ...undamped,
      rank: 16,
      regParam: 0.001,
      rate: 'constant',
      learningRate: 0.05,
      maxIter: 200,
    } as const;
    const model = await new SGD({ ...overfit, earlyStop: 3 }).fit(dataset(train), {
      validation: dataset(validation),
    });
    const { iterations = [], bestIteration = 0 } = model.training ?? {};
    expect(bestIteration).toBe(iterations.length - 3);
    expect(await rmse(model, validation)).toBeCloseTo(
      Math.min(...iterations.map(({ testRmse }) => testRmse as number)),
      5,
    );
    const target = iterations[1].testRmse as number;
    const short = await new SGD({ ...overfit, targetRmse: target }).fit(dataset(train), {
      validation: dataset(validation),
    });
    expect(short.training?.iterations).toHaveLength(2);
  });
});

/**
 * Test RMSE of SGD with biases one rating after the other in float64, in an order shuffled anew in each
 * epoch.
 */
function sequentialRmse(
  train: readonly Triple[],
  test: readonly Triple[],
  rank: number,
  regParam: number,
  alpha: number,
  epochs: number,
): number {
  const mean = train.reduce((sum, { rating }) => sum + rating, 0) / train.length;
  const deviation = Math.sqrt(
    train.reduce((sum, { rating }) => sum + (rating - mean) ** 2, 0) / train.length,
  );
  const count = (side: 'user' | 'item') => Math.max(...train.map((row) => row[side])) + 1;
  const stride = rank + 2;
  const start = (rows: number, one: number, seed: number) =>
    Float64Array.from({ length: rows * stride }, (_, k) =>
      k % stride < 2 ? Number(k % stride === one) : 0.03 * Math.sin(seed + 12.9898 * k * (k % 97)),
    );
  const [p, q] = [start(count('user'), 1, 1), start(count('item'), 0, 2)];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const order = shuffled(train, epoch + 1);
    const ratings = {
      rows: order.map(({ user }) => user),
      columns: order.map(({ item }) => item),
      values: order.map(({ rating }) => (rating - mean) / deviation),
    };
    const lambda = regParam / deviation;
    stepInOrder(p, q, stride, ratings, {
      rank,
      biases: true,
      rate: alpha / (1 + 0.3 * epoch ** 1.5),
      rowLambda: lambda,
      columnLambda: lambda,
    });
  }
  const squares = test.reduce((sum, { user, item, rating }) => {
    let product = 0;
    for (let k = 0; k < stride; k++) product += p[user * stride + k] * q[item * stride + k];
    return sum + (rating - mean - deviation * product) ** 2;
  }, 0);
  return Math.sqrt(squares / test.length);
}
