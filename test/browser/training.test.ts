/** Training in a page gives the model that Node trains from the same ratings, seed and options. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type PageAlsOptions,
  type PageModel,
  type PageRating,
  trainAls,
  type PageSgdOptions,
  type PageTraining,
  trainSgd,
} from '../../browser/index.ts';
import { ALS, type Model, CancelledError, col, UsageError, SGD } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const all = randomRatings(71, 60, 80, 1900);
const cut = Math.floor(0.85 * all.length);
const [train, test] = [all.slice(0, cut), all.slice(cut)];
const session = await cpuSession({ workers: 1 });

const kinds: Readonly<Record<string, PageAlsOptions>> = {
  'with biases': {},
  'without biases': { biases: false, regOffset: 0 },
  'by conjugate gradients': { rank: 20, solver: 'cg' },
  nonnegative: { biases: false, nonnegative: true },
  'ending early': { maxIter: 20, earlyStop: 1 },
};

describe('trainAls', () => {
  it.each(Object.entries(kinds))("gives Node's model: %s", async (_, given) => {
    const options = { rank: 7, maxIter: 4, seed: 3, ...given };
    const page = await trainAls(train, { ...options, test });
    const model = await new ALS(options).fit(session.fromRows(train), { validation: session.fromRows(test) });
    await expectSameTraining(page, model, train);
  });

  it.each(['auto', 'log', 'bm25'] as const)('takes implicit data with the weight %s', async (weight) => {
    const options = { rank: 7, maxIter: 3, seed: 5, implicitPrefs: true, biases: false, weight } as const;
    const page = await trainAls(train, options);
    const model = await new ALS(options).fit(session.fromRows(train));
    expect(page.iterations.map(({ loss }) => loss)).toEqual(
      model.training?.iterations.map(({ loss }) => loss),
    );
    const visitor = { ratings: [{ item: train[0].item }, { item: train[9].item, rating: 2 }] };
    expect(await page.model.recommend(visitor, 20)).toEqual(await model.recommend(visitor, 20));
    await page.model.close();
    await model.close();
  });

  it("has Node's NDCG@20 of films that users chose", async () => {
    const file = join(import.meta.dirname, '../../examples/data/movietweetings-100k/ratings.parquet');
    const chosen = await session.read.parquet(file).filter(col('rating').ge(7)).toArray();
    const rows = chosen.map(({ user, item }) => ({ user: Number(user), item: Number(item), rating: 1 }));
    const byUser = Map.groupBy(rows, ({ user }) => user);
    const tested = [...byUser.values()].filter(({ length }) => length >= 10).slice(0, 100);
    // The last film of each of these users is the one to find.
    const wanted = new Set(tested.map((own) => own.at(-1)));
    const known = rows.filter((row) => !wanted.has(row));
    const options = { rank: 16, maxIter: 3, seed: 3, implicitPrefs: true } as const;
    const page = await trainAls(known, options);
    const model = await new ALS(options).fit(session.fromRows(known));
    const ndcg = async (one: Pick<PageModel, 'recommend'>) => {
      let sum = 0;
      for (const own of tested) {
        const ratings = own.slice(0, -1).map(({ item, rating }) => ({ item, rating }));
        const { items } = await one.recommend({ ratings }, 20);
        const at = items.findIndex(({ item }) => item === own.at(-1)?.item);
        if (at >= 0) sum += 1 / Math.log2(at + 2);
      }
      return sum / tested.length;
    };
    const [inPage, inNode] = [await ndcg(page.model), await ndcg(model)];
    expect(inPage).toBeGreaterThan(0.02);
    expect(Math.abs(inPage - inNode)).toBeLessThan(1e-3);
    await page.model.close();
    await model.close();
  });

  it.each<[string, (id: number) => number | bigint | string]>([
    ['texts', (id) => `no. ${id % 7} ${id}`],
    ['beyond 32 bits', (id) => 2n ** 62n - BigInt(id * id)],
  ])('numbers ids that are %s as Node does', async (_, idOf) => {
    const rows = train.map(({ user, item, rating }) => ({ user: idOf(user), item: idOf(item), rating }));
    const page = await trainAls(rows, { rank: 4, maxIter: 2, seed: 1 });
    const model = await new ALS({ rank: 4, maxIter: 2, seed: 1 }).fit(session.fromRows(rows));
    const visitor = { ratings: rows.slice(0, 4).map(({ item, rating }) => ({ item, rating })) };
    expect(await page.model.recommend(visitor, 5)).toEqual(await model.recommend(visitor, 5));
    expect(page.iterations.at(-1)?.loss).toBe(model.training?.iterations.at(-1)?.loss);
    await page.model.close();
    await model.close();
  });

  it('reports iterations as they end, and ends when it is cancelled', async () => {
    const aborting = new AbortController();
    const ended: number[] = [];
    const training = trainAls(train, {
      rank: 5,
      maxIter: 50,
      signal: aborting.signal,
      onEvent: (event) => {
        if (event.type !== 'iteration') return;
        ended.push(event.iteration);
        if (ended.length === 2) aborting.abort();
      },
    });
    await expect(training).rejects.toThrow(CancelledError);
    expect(ended.slice(0, 2)).toEqual([1, 2]);
    expect(ended.length).toBeLessThan(50);
  });

  it('refuses wrong ratings and options', async () => {
    const refuse = async (ratings: unknown, options: object, message: string) => {
      const error = await trainAls(ratings as PageRating[], options).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UsageError);
      expect((error as Error).message).toContain(message);
    };
    await refuse('ratings', {}, 'ratings must be a list');
    await refuse([], {}, 'there are no ratings to train on');
    await refuse([{ user: 1, item: 2 }], {}, 'a rating is an object such as');
    await refuse([{ user: 1, item: 2, rating: Number.NaN }], {}, 'a rating is an object such as');
    await refuse([{ user: 1.5, item: 2, rating: 3 }], {}, '"1.5" is not an id');
    await refuse(train, { rnak: 3 }, 'rnak');
    await refuse(train, { rank: 0 }, 'rank');
    await refuse(train, { signal: 3 }, 'takes an AbortSignal');
    await refuse(
      Array.from({ length: 1_000_001 }, () => train[0]),
      {},
      'at most 1,000,000 ratings',
    );
  });
});

describe('training by SGD', () => {
  const kinds: Readonly<Record<string, PageSgdOptions>> = {
    'with biases': {},
    'without biases': { biases: false },
    'by waves': { schedule: 'wavefront' },
    'by the rates of rows': { rate: 'adagrad' },
    'ending early': { maxIter: 30, earlyStop: 1 },
  };

  describe('trainSgd', () => {
    it.each(Object.entries(kinds))("gives Node's model: %s", async (_, given) => {
      const options = { rank: 7, maxIter: 5, seed: 3, ...given };
      const page = await trainSgd(train, { ...options, test });
      const model = await new SGD(options).fit(session.fromRows(train), {
        validation: session.fromRows(test),
      });
      await expectSameTraining(page, model, train);
    });

    it('ends when it is cancelled', async () => {
      const aborting = new AbortController();
      const training = trainSgd(train, {
        maxIter: 50,
        signal: aborting.signal,
        onEvent: ({ type }) => type === 'iteration' && aborting.abort(),
      });
      await expect(training).rejects.toThrow(CancelledError);
    });

    it('refuses wrong ratings and options', async () => {
      const refuse = async (ratings: unknown, options: object, message: string) => {
        const error = await trainSgd(ratings as PageRating[], options).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(UsageError);
        expect((error as Error).message).toContain(message);
      };
      await refuse([], {}, 'there are no ratings to train on');
      await refuse([{ user: 1, item: 2 }], {}, 'a rating is an object such as');
      await refuse(train, { implicitPrefs: true }, 'implicitPrefs');
      await refuse(train, { device: 'gpu' }, 'device');
      await refuse(train, { threads: 0 }, 'threads must be a whole number');
    });
  });
});

/**
 * A page's training had the course of Node's, and its model recommends the same items to a visitor with the first
 * of these ratings. Closes both models.
 */
async function expectSameTraining(
  page: PageTraining,
  model: Model,
  train: readonly PageRating[],
): Promise<void> {
  const course = (iterations: readonly { readonly seconds: number }[] = []) =>
    iterations.map(({ seconds: _seconds, ...iteration }) => iteration);
  expect(course(page.iterations)).toEqual(course(model.training?.iterations));
  expect([page.bestIteration, page.coldPairs]).toEqual([
    model.training?.bestIteration,
    model.training?.coldPairs,
  ]);
  expect(page.iterations.at(-1)?.testRmse).toBeGreaterThan(0);
  const visitor = { ratings: train.slice(0, 6).map(({ item, rating }) => ({ item, rating })) };
  expect(await page.model.recommend(visitor, 10)).toEqual(await model.recommend(visitor, 10));
  const [{ item }] = train;
  expect(await page.model.similar(item, 10)).toEqual(await model.similar(item, 10));
  expect(page.model.itemCounts).toEqual(model.itemCounts);
  await page.model.close();
  await model.close();
}
