/** The model of a page gives the results of Node's model, bit for bit, from the same files. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openModel } from '../../browser/index.ts';
import { ALS, type AlsOptions, ItemNames, SGD } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

const triples = randomRatings(71, 60, 80, 1500);
const site = served();
const { folder } = site;
const users = [...new Set(triples.map(({ user }) => user))];
/** The ratings of the k-th user. */
const ratedBy = (k: number) =>
  triples.filter((row) => row.user === users[k]).map(({ item, rating }) => ({ item, rating }));

const kinds: Readonly<Record<string, AlsOptions>> = {
  'with biases': { biases: true },
  'without biases': { biases: false },
  'of a rank that conjugate gradients solve': { rank: 60 },
  nonnegative: { biases: false, nonnegative: true },
  implicit: { implicitPrefs: true, biases: false, alpha: 3 },
};

type ItemId = (item: number) => number | bigint | string;

async function saved(name: string, options: AlsOptions, idOf: ItemId = (item) => item) {
  const rows = triples.map(({ user, item, rating }) => ({ user, item: idOf(item), rating }));
  const als = new ALS({ rank: 9, maxIter: 3, seed: 2, regParam: 0.07, ...options });
  const model = await als.fit(site.session.fromRows(rows));
  await model.save(join(folder, name), { overwrite: true });
  return model;
}

describe('a model of a page', () => {
  it.each(Object.entries(kinds))(
    'recommends, compares and explains as in Node: %s',
    async (kind, options) => {
      const name = kind.replaceAll(' ', '-');
      const model = await saved(name, options);
      const page = await openModel(`${site.server.url}/${name}/`);
      expect([page.rank, page.itemCount]).toEqual([model.rank, model.itemCount]);
      expect(page.itemCounts).toEqual(model.itemCounts);
      const names = new ItemNames(page.itemIds().map((id) => [id, `film ${id}`]));
      for (const user of [3, 17, 40]) {
        const ratings = ratedBy(user);
        const visitor = { ratings: [...ratings, { item: 99_999, rating: 3 }] };
        const given = { names, deny: [ratings[0].item, 5, 7] };
        expect(await page.recommend(visitor, 10, given)).toEqual(await model.recommend(visitor, 10, given));
        const best = (await model.recommend({ ratings }, 1)).items[0].item;
        if (options.nonnegative) continue;
        expect(await page.explain(ratings, best, { names })).toEqual(
          await model.explain(ratings, best, { names }),
        );
      }
      const [{ item }] = triples;
      for (const similarity of ['cosine', 'dot'] as const)
        expect(await page.similar(item, 12, { similarity, names })).toEqual(
          await model.similar(item, 12, { similarity, names }),
        );
      await page.close();
      await model.close();
    },
  );

  it.each([{ biases: true }, { implicitPrefs: true, unobservedWeight: 0.1, alpha: 3 }])(
    'knows items without ratings, and draws visitors to what is predicted of users: %j',
    async (options) => {
      const sideOf = (side: 'user' | 'item', ids: readonly number[]) => ({
        data: site.session.fromRows(ids.map((id) => ({ [side]: id, kind: `k${id % 3}` }))),
        id: side,
      });
      const items = [...new Set(triples.map(({ item }) => item))];
      await saved('attributes', {
        ...options,
        itemAttributes: sideOf('item', [...items, 5001, 5002, 5003]),
        userAttributes: sideOf('user', [...users, 6001]),
      });
      const model = await site.session.loadModel(join(folder, 'attributes'));
      const page = await openModel(`${site.server.url}/attributes`);
      expect(page.itemCount).toBe(items.length + 3);
      const visitor = { ratings: ratedBy(3) };
      const own = await page.recommend(visitor, page.itemCount);
      expect(own).toEqual(await model.recommend(visitor, page.itemCount));
      expect(own.items.filter(({ item }) => Number(item) > 5000)).toHaveLength(3);
      const warm = await page.recommend(visitor, page.itemCount, { coldItems: 'exclude' });
      expect(warm.items).toEqual(own.items.filter(({ item }) => Number(item) < 5000));
      for (const item of [own.items[0].item, 5002]) {
        const explained = await page.explain(visitor.ratings, item);
        expect(explained).toEqual(await model.explain(visitor.ratings, item));
        expect(explained.userAttributes).toBeTypeOf('number');
        expect(await page.similar(item, 8)).toEqual(await model.similar(item, 8));
      }
      const asked = { ...visitor, attributes: { kind: 'k1' } };
      await expect(page.recommend(asked, 3)).rejects.toThrow('a page does not read the attributes of users');
      // Models that were saved before have no constant in their metadata.
      const file = join(folder, 'attributes/metadata/part-00000');
      const line = readFileSync(file, 'utf8');
      writeFileSync(
        file,
        line.replace(/"constant":\[[^\]]*\]/g, '"constant":[]').replace(/,"checksum":"\w+"/, ''),
      );
      await expect(openModel(`${site.server.url}/attributes`)).rejects.toThrow(
        'the metadata do not contain the constant of the attributes of users',
      );
      await page.close();
      await model.close();
    },
  );

  it.each<[string, ItemId]>([
    ['int64', (item) => 2n ** 60n - BigInt(item * item)],
    ['int64 below the safe integers', (item) => BigInt(item) * 2n ** 33n - 50n],
    ['text', (item) => `${item % 2 === 0 ? 'Ö' : '\uFEFFf'}ilm ${item}`],
  ])('has the ids of the model: %s', async (kind, idOf) => {
    const model = await saved('ids', {}, idOf);
    const page = await openModel(`${site.server.url}/ids`);
    const ratings = ratedBy(9).map(({ item, rating }) => ({ item: idOf(item), rating }));
    const own = await model.recommend({ ratings }, 10);
    expect(own.items, kind).toHaveLength(10);
    expect(await page.recommend({ ratings }, 10)).toEqual(own);
    expect(page.itemIds().every((id) => model.hasItem(id) && page.hasItem(id))).toBe(true);
    await page.close();
    await model.close();
  });

  it('takes a model by SGD', async () => {
    const model = await new SGD({ rank: 8, maxIter: 3, seed: 1 }).fit(site.session.fromRows(triples));
    await model.save(join(folder, 'sgd'));
    const page = await openModel(`${site.server.url}/sgd`);
    const visitor = { ratings: ratedBy(20) };
    expect(await page.recommend(visitor, 7)).toEqual(await model.recommend(visitor, 7));
    await page.close();
    await model.close();
  });

  it('answers a visitor without known items as asked', async () => {
    const model = await saved('cold', {});
    const page = await openModel(`${site.server.url}/cold`);
    const visitor = { ratings: [{ item: 99_999, rating: 3 }] };
    for (const unknownUsers of ['empty', 'popular'] as const)
      expect(await page.recommend(visitor, 4, { unknownUsers })).toEqual(
        await model.recommend(visitor, 4, { unknownUsers }),
      );
    await expect(page.recommend(visitor, 4, { unknownUsers: 'error' })).rejects.toThrow('knows no item');
    await model.close();
    await page.close();
    await expect(page.recommend(visitor, 4)).rejects.toThrow('the model is closed');
  });

  it('answers several visitors and items at once as one by one', async () => {
    const model = await saved('several', { biases: true });
    const page = await openModel(`${site.server.url}/several`);
    const visitors = [3, 17, 40].map((user) => ({ ratings: ratedBy(user) }));
    visitors.splice(1, 0, { ratings: [{ item: 99_999, rating: 3 }] });
    const names = new ItemNames(page.itemIds().map((id) => [id, `film ${id}`]));
    const options = { names, deny: [5, 7], unknownUsers: 'popular' } as const;
    expect(await page.recommendToVisitors(visitors, 6, options)).toEqual(
      await Promise.all(visitors.map((visitor) => model.recommend(visitor, 6, options))),
    );
    const ids = page.itemIds();
    const similar = await page.similarItems('all', 4, { similarity: 'dot', names });
    expect(similar).toEqual(
      await Promise.all(ids.map((id) => model.similar(id, 4, { similarity: 'dot', names }))),
    );
    expect(await page.similarItems([ids[7], ids[2]], 4)).toEqual([
      await page.similar(ids[7], 4),
      await page.similar(ids[2], 4),
    ]);
    expect(await page.recommendToVisitors([], 6)).toEqual([]);
    expect(await page.similarItems([], 6)).toEqual([]);
    await page.close();
    await model.close();
  });

  it('says that it has no code of WebGPU', async () => {
    const model = await saved('no-gpu', {});
    const page = await openModel(`${site.server.url}/no-gpu`);
    const visitor = { ratings: ratedBy(5) };
    const [{ item }] = visitor.ratings;
    const problem = 'the model was opened without the code of WebGPU';
    await expect(page.recommend(visitor, 5, { device: 'gpu' })).rejects.toThrow(problem);
    await expect(page.recommendToVisitors([visitor], 5, { device: 'gpu' })).rejects.toThrow(problem);
    await expect(page.similar(item, 5, { device: 'gpu' })).rejects.toThrow(problem);
    const own = await model.recommend(visitor, 5);
    for (const device of ['auto', 'cpu'] as const)
      expect(await page.recommend(visitor, 5, { device })).toEqual(own);
    await expect(openModel(`${site.server.url}/no-gpu`, { webGpu: true as never })).rejects.toThrow(
      'the option webGpu of openModel takes webGpu, got true',
    );
    await model.close();
    await page.close();
  });

  it('marks items that the model does not know', async () => {
    await saved('unknown', {});
    const page = await openModel(`${site.server.url}/unknown`);
    const nothing = { item: 99_999, known: false, similar: [] };
    expect(await page.similar(99_999, 5)).toEqual(nothing);
    const [first, second, third] = await page.similarItems([triples[0].item, 99_999, triples[0].item], 5);
    expect([first.known, second]).toEqual([true, nothing]);
    expect(third).toEqual(first);
    await page.close();
  });

  it('refuses wrong arguments', async () => {
    const model = await saved('wrong', {});
    const page = await openModel(`${site.server.url}/wrong`);
    const recommend = (visitor: unknown, n: unknown, options: object = {}) =>
      page.recommend(visitor as { ratings: [] }, n as number, options);
    await expect(recommend(3, 5)).rejects.toThrow("recommend takes the visitor's ratings, got 3");
    await expect(recommend({ ratings: [{ item: 1 }] }, 5)).rejects.toThrow('must be a finite number');
    await expect(recommend({ ratings: [] }, 0)).rejects.toThrow('n must be a whole number');
    await expect(recommend({ ratings: [] }, 5, { nams: 1 })).rejects.toThrow('unknown option nams');
    await expect(page.similar({} as unknown as string, 5)).rejects.toThrow('similar takes an id');
    await expect(page.similarItems(3 as unknown as [], 5)).rejects.toThrow(
      'similarItems takes a list of ids',
    );
    await expect(page.recommendToVisitors(3 as unknown as [], 5)).rejects.toThrow(
      'recommendToVisitors takes a list of visitors, got 3',
    );
    await expect(page.recommendToVisitors([null as unknown as { ratings: [] }], 5)).rejects.toThrow(
      'recommendToVisitors takes a list of visitors, got null',
    );
    await expect(recommend({ ratings: [] }, 5, { device: 'tpu' })).rejects.toThrow(
      'device must be one of auto, cpu, gpu, got "tpu"',
    );
    await expect(recommend({ ratings: [] }, 5, { device: 'gpu', index: 3 })).rejects.toThrow(
      "recommend searches an index on the processor, and device is 'gpu'",
    );
    await expect(page.explain({ user: 1, ratings: {} } as unknown as readonly [], 1)).rejects.toThrow(
      'explain takes a list of ratings',
    );
    await expect(openModel(5 as unknown as string)).rejects.toThrow('openModel takes the URL');
    await page.close();
    await model.close();
  });
});
