import { describe, expect, it } from 'vitest';
import { stepInOrder } from '../../../cpu/reference/sgd.ts';
import { type Dataset, type Model, SGD, type SgdOptions } from '../../../index.ts';
import { isDeep } from '../../support/deep.ts';
import { plantedRatings } from '../../support/planted.ts';
import { randomRatings, ratingBatches, shuffled, type Triple } from '../../support/ratings.ts';
import { undamped } from '../../support/settings.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { valuesOf as factors } from '../../support/model-values.ts';

const session = await cpuSession();

const dataset = (rows: readonly Triple[], of = session): Dataset => of.from(ratingBatches(rows, 997));

const fit = (rows: readonly Triple[], options: SgdOptions, of = session): Promise<Model> =>
  new SGD(options).fit(dataset(rows, of));

const rmse = async (model: Model, rows: readonly Triple[]) => (await model.evaluate(dataset(rows))).rmse;
const schedules = ['hogwild', 'wavefront', 'blocks'] as const;
const rates = ['paper', 'constant', 'bold', 'adagrad'] as const;

describe.each(schedules)('sgd by %s', (schedule) => {
  const ratesOf = {
    hogwild: ['paper', 'constant'],
    wavefront: ['bold'],
    blocks: ['adagrad', 'paper'],
  } as const;
  it.each(isDeep ? rates : ratesOf[schedule])(
    'finds planted factors and biases with the rate %s',
    async (rate) => {
      const rows = plantedRatings(3, 300, 200, 20_000);
      const [train, test] = [rows.slice(1500), rows.slice(0, 1500)];
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
    },
  );

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
      const adagrad = { biases: false, rate: 'adagrad' } as const;
      const options = schedule === 'blocks' ? adagrad : { biases: true };
      const rows = randomRatings(23, 300, 150, 9000);
      const all = { rank: 7, maxIter: 3, seed: 4, schedule, ...options };
      const first = await fit(rows, all);
      const second = await fit(shuffled(rows, 9), all);
      expect(factors(second.userFactors)).toEqual(factors(first.userFactors));
      expect(factors(second.itemFactors)).toEqual(factors(first.itemFactors));
      const other = await fit(rows, { ...all, seed: 5 });
      expect(factors(other.itemFactors)).not.toEqual(factors(first.itemFactors));
    },
  );

  it('by blocks gives the same bits for 2 and 4 workers, which share a grid', async () => {
    const rows = randomRatings(29, 250, 400, 9000);
    const options = { rank: 6, maxIter: 3, biases: true } as const;
    const first = factors((await fit(rows, options)).userFactors);
    const other = await cpuSession({ workers: 4 });
    expect(factors((await fit(rows, options, other)).userFactors)).toEqual(first);
  });

  it('by hogwild with many workers is within 0.002 of sequential SGD in float64', async () => {
    const rows = plantedRatings(31, 400, 300, 20_000);
    const [train, test] = [rows.slice(1500), rows.slice(0, 1500)];
    const options = {
      ...undamped,
      rank: 4,
      regParam: 0.05,
      learningRate: 0.03,
      maxIter: 30,
      schedule: 'hogwild',
    } as const;
    const sequential = sequentialRmse(train, test, 4, 0.05, 0.03, 30);
    const many = await cpuSession({ workers: 4 });
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
