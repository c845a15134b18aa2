/** Models by default parameters beat damped means of items and users: docs/measured/quality.md. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset, type Model, Session, SGD } from '../../index.ts';
import { dataFolder } from '../support/data-folder.ts';
import { isDeep } from '../support/deep.ts';
import { ratingBatches, type Triple } from '../support/ratings.ts';

let session: Session;
beforeAll(async () => {
  session = await Session.create({ workers: 2, device: 'cpu' });
});
afterAll(() => session.close());

const folders = {
  'movietweetings-100k': resolve(import.meta.dirname, '../../examples/data/movietweetings-100k'),
  ...Object.fromEntries(
    ['filmtrust', ...(isDeep ? ['ml-latest-small', 'douban-monti', 'bookcrossing'] : [])].map((name) => [
      name,
      dataFolder(name),
    ]),
  ),
};

function splitsOf(folder: string, count: number): (readonly [Dataset, Dataset])[] {
  const read = (name: string) => session.read.parquet(join(folder, name));
  if (existsSync(join(folder, 'train.parquet'))) return [[read('train.parquet'), read('test.parquet')]];
  return [1, 2, 3]
    .slice(0, count)
    .map((seed) => read('ratings.parquet').randomSplit([0.9, 0.1], { seed }) as [Dataset, Dataset]);
}

/**
 * Test RMSE relative to damped means, after the last iteration and after the third, averaged over at most
 * `count` splits.
 */
async function ratiosOf(
  trainer: ALS | SGD,
  folder: string,
  count = isDeep ? 2 : 1,
): Promise<{ readonly last: number; readonly third: number }> {
  let [last, third] = [0, 0];
  const splits = splitsOf(folder, count);
  for (const [train, test] of splits) {
    const { training } = await trainer.fit(train, { validation: test });
    const damped = training?.baselines?.dampedMeans.rmse ?? Number.NaN;
    last += Number(training?.iterations.at(-1)?.testRmse) / damped / splits.length;
    third += Number(training?.iterations[2].testRmse) / damped / splits.length;
  }
  return { last, third };
}

describe.each(Object.entries(folders))('on %s', (name, folder) => {
  // The splits of the sparsest set differ by more than what is compared.
  const splits = name === 'bookcrossing' ? 3 : 1;

  it.skipIf(!folder)(
    'ALS is below 0.995 of damped means, and after 3 iterations within 3 % of after 10',
    async () => {
      const { last, third } = await ratiosOf(new ALS(), folder as string);
      expect(last).toBeLessThan(0.995);
      expect(third / last).toBeLessThan(1.03);
      expect(third / last).toBeGreaterThan(0.97);
    },
  );

  it.skipIf(!folder)(
    'SGD is below 0.995 of damped means, and at ranks 10 and 64 within 2 % of ALS',
    async () => {
      for (const rank of isDeep ? [10, 64] : [name === 'filmtrust' ? 64 : 10]) {
        const [als, sgd] = [
          await ratiosOf(new ALS({ rank }), folder as string, splits),
          await ratiosOf(new SGD({ rank }), folder as string, splits),
        ];
        expect(sgd.last).toBeLessThan(0.995);
        expect(sgd.last / als.last).toBeLessThan(1.02);
      }
    },
  );

  it.skipIf(!folder)('ALS without biases is after 3 iterations within 10 % of after 10', async () => {
    const { last, third } = await ratiosOf(new ALS({ biases: false }), folder as string);
    expect(third / last).toBeLessThan(1.1);
    expect(third / last).toBeGreaterThan(0.9);
  });
});

describe.each<[string, (options: object) => ALS | SGD]>([
  ['ALS', (options) => new ALS(options)],
  ['ALS without biases', (options) => new ALS({ biases: false, ...options })],
  ['SGD', (options) => new SGD(options)],
  ['SGD without biases', (options) => new SGD({ biases: false, ...options })],
])('%s by default', (_, make) => {
  const fit = (rows: readonly Triple[]): Promise<Model> => make({}).fit(session.from(ratingBatches(rows)));

  it.each<[string, readonly Triple[]]>([
    ['equal ratings', Array.from({ length: 60 }, (_, k) => ({ user: k % 10, item: k % 12, rating: 4 }))],
    ['equal ratings of 0', Array.from({ length: 60 }, (_, k) => ({ user: k % 10, item: k % 12, rating: 0 }))],
    ['one user', Array.from({ length: 12 }, (_, item) => ({ user: 1, item, rating: 1 + (item % 5) }))],
    ['one item', Array.from({ length: 12 }, (_, user) => ({ user, item: 1, rating: 1 + (user % 5) }))],
    ['one rating', [{ user: 1, item: 1, rating: 3 }]],
    [
      'ratings from 0 to a million',
      Array.from({ length: 400 }, (_, k) => ({
        user: k % 23,
        item: (7 * k) % 31,
        rating: k % 40 === 0 ? 1e6 : k % 9,
      })),
    ],
  ])('trains on %s, and is no worse than their mean', async (_, rows) => {
    const { training } = await fit(rows);
    const mean = rows.reduce((sum, { rating }) => sum + rating, 0) / rows.length;
    const deviation = Math.sqrt(
      rows.reduce((sum, { rating }) => sum + (rating - mean) ** 2, 0) / rows.length,
    );
    const scale = Math.max(...rows.map(({ rating }) => Math.abs(rating)));
    expect(training?.iterations.at(-1)?.trainRmse).toBeLessThanOrEqual(deviation + 0.1 * (scale || 1));
  });
});
