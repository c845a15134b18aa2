/** The index of a trained model for large catalogues, compared with exact searches. */
import { cpSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Searches } from '../../api/serving/searches.ts';
import { MASKED_COLUMNS } from '../../cpu/tasks/lists/search-lists.ts';
import { ALS, CancelledError, col, type Model } from '../../index.ts';
import { isDeep } from '../support/deep.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { cpuSession } from '../support/cpu-session.ts';

const folder = temporaryFolder();
const ratings = join(import.meta.dirname, '../../examples/data/movietweetings-100k/ratings.parquet');
const saved = join(folder, 'model');
let model: Model;
let users: number[];
let items: number[];
let built: Awaited<ReturnType<Model['buildIndex']>>[number];

const session = await cpuSession();
beforeAll(async () => {
  const data = session.read.parquet(ratings);
  model = await new ALS({ rank: 12, maxIter: 4, biases: true, seed: 3 }).fit(data);
  users = Array.from(model.userArrays.ids as Int32Array).slice(0, 30);
  items = Array.from(model.itemArrays.ids as Int32Array).filter((_, i) => i % 300 === 0);
  [built] = await model.buildIndex({ lists: 64, seed: 5 });
  await model.save(saved);
  await model.saveIndex(saved);
});

/** The part of the items of exact lists that other lists have. */
function recallOf(exact: readonly (readonly unknown[])[], found: readonly (readonly unknown[])[]): number {
  const hits = exact.flatMap((list, i) => list.filter((item) => found[i].includes(item)));
  return hits.length / exact.flat().length;
}

const idsOf = ({ items: found }: { readonly items: readonly { readonly item: unknown }[] }) =>
  found.map(({ item }) => item);
const allOf = (index: boolean | number, options = {}) =>
  Promise.all(users.map((user) => model.recommend(user, 10, { index, ...options })));

describe('an index', () => {
  it('finds nearly all of the best items in a few of its lists', async () => {
    expect(built).toMatchObject({ search: 'recommend', lists: 64 });
    expect(built.recall).toBeGreaterThanOrEqual(0.97);
    expect(built.probes).toBeLessThan(32);
    const recall = recallOf((await allOf(false)).map(idsOf), (await allOf(true)).map(idsOf));
    expect(recall).toBeGreaterThan(0.95);
    expect(recall).toBeGreaterThan(recallOf((await allOf(false)).map(idsOf), (await allOf(1)).map(idsOf)));
  });

  it('is the one before if another one is cancelled while its searches are tuned', async () => {
    const before = await allOf(1);
    const controller = new AbortController();
    const tuned = vi.spyOn(Searches.prototype, 'tuneLists').mockImplementationOnce(async () => {
      controller.abort();
    });
    const options = { lists: 200, seed: 9, searches: ['recommend'] } as const;
    const building = model.buildIndex({ ...options, signal: controller.signal });
    await expect(building).rejects.toThrow(CancelledError);
    expect(tuned).toHaveBeenCalledOnce();
    tuned.mockRestore();
    expect(await allOf(1)).toEqual(before);
  });

  it.each(isDeep ? [12, 80] : [80])(
    'leaves out few of the best items by their signs, at rank %i',
    async (rank) => {
      const data = session.read.parquet(ratings);
      const signed = await new ALS({ rank, maxIter: 2, seed: 4 }).fit(data);
      await signed.buildIndex({ lists: 32 });
      // All lists but one: items are left out by their signs alone, or are in the list of the fewest.
      const [exact, found] = await Promise.all(
        [false, 31].map((index) => Promise.all(users.map((user) => signed.recommend(user, 10, { index })))),
      );
      expect(recallOf(exact.map(idsOf), found.map(idsOf))).toBeGreaterThan(0.95);
      const similar = (index: boolean | number) =>
        Promise.all(
          items.map(async (id) => (await signed.similar(id, 10, { index })).similar.map((one) => one.item)),
        );
      expect(recallOf(await similar(false), await similar(31))).toBeGreaterThan(0.95);
      await signed.close();
    },
  );

  it('gives the exact lists, bit by bit, if all lists are searched', async () => {
    const exclude = await model.exclusions(session.read.parquet(ratings));
    const deny = items.slice(0, 5);
    for (const options of [{}, { exclude }, { deny }, { exclude, deny }, { allow: items }])
      expect(await allOf(64, options)).toEqual(await allOf(false, options));
    for (const similarity of ['cosine', 'dot'] as const)
      for (const id of items)
        expect(await model.similar(id, 10, { similarity, index: 64 })).toEqual(
          await model.similar(id, 10, { similarity }),
        );
  });

  it('gives the same lists for all users as for one, and the exact ones from all lists', async () => {
    const exclude = await model.exclusions(session.read.parquet(ratings));
    const deny = items.slice(0, 5);
    const rows = async (index: boolean | number) => {
      const lists = new Map<unknown, unknown[]>();
      for await (const batch of model.recommendForAllUsers(10, { exclude, deny, index }))
        for (const { user, item, prediction } of batch.toArray())
          lists.set(user, [...(lists.get(user) ?? []), { item, score: prediction }]);
      return lists;
    };
    const [few, all] = [await rows(3), await rows(64)];
    expect(all).toEqual(await rows(false));
    expect(few).not.toEqual(all);
    for (const user of users)
      expect((await model.recommend(user, 10, { exclude, deny, index: 3 })).items).toEqual(few.get(user));
    const similar = async (index: boolean | number) => {
      const found: unknown[] = [];
      for await (const batch of model.similarItems('all', 3, { index }))
        found.push(...batch.toArray().map((row) => row.toJSON()));
      return found;
    };
    expect(await similar(64)).toEqual(await similar(false));
  });

  it('fills the lists of a filter that most items do not meet, and of allowed items', async () => {
    const filters = await model.readItemFilters(
      join(import.meta.dirname, '../../examples/data/movietweetings-100k/titles.parquet'),
    );
    const filter = filters.where("startsWith(title, 'T')");
    const exact = await allOf(false, { filter });
    const found = await allOf(3, { filter });
    found.forEach((list, i) => expect(list.items.length).toBe(exact[i].items.length));
    expect(recallOf(exact.map(idsOf), found.map(idsOf))).toBeGreaterThan(0.9);
    expect(await allOf(64, { filter })).toEqual(exact);
  });

  it('gathers the mask of a long list in parts', async () => {
    const long = await new ALS({ rank: 4, maxIter: 1 }).fit(session.read.parquet(ratings));
    await long.buildIndex({ lists: 2, searches: ['recommend'] });
    // One of the two lists is longer than the part.
    expect(long.itemCount).toBeGreaterThan(2 * MASKED_COLUMNS);
    const filters = await long.readItemFilters(
      join(import.meta.dirname, '../../examples/data/movietweetings-100k/titles.parquet'),
    );
    const filter = filters.where("startsWith(title, 'T')");
    const find = (index: boolean | number) =>
      Promise.all(users.map((user) => long.recommend(user, 10, { filter, index })));
    const exact = await find(false);
    expect(await find(2)).toEqual(exact);
    expect(recallOf(exact.map(idsOf), (await find(1)).map(idsOf))).toBeGreaterThan(0.9);
    await long.close();
  });

  it('answers for ratings of a user who is not in the model', async () => {
    const rated = { ratings: items.slice(0, 5).map((item, k) => ({ item, rating: 4 + k })) };
    const exact = await model.recommend(rated, 10, { index: false });
    expect(idsOf(await model.recommend(rated, 10, { index: 64 }))).toEqual(idsOf(exact));
  });

  it('is used without being asked for in large catalogues alone', async () => {
    expect(await Promise.all(users.map((user) => model.recommend(user, 10)))).toEqual(await allOf(false));
  });

  it('has the same bytes for any number of threads', async () => {
    const other = await cpuSession({ workers: 1 });
    const again = await other.loadModel(saved);
    await again.buildIndex({ lists: 64, seed: 5 });
    cpSync(saved, join(folder, 'again'), { recursive: true });
    await again.saveIndex(join(folder, 'again'));
    for (const kind of ['recommend', 'similar'])
      expect(bytesOf(join(folder, 'again'), kind).equals(bytesOf(saved, kind))).toBe(true);
    await again.buildIndex({ lists: 64, seed: 6, searches: ['recommend'] });
    await again.saveIndex(join(folder, 'again'));
    expect(bytesOf(join(folder, 'again'), 'recommend').equals(bytesOf(saved, 'recommend'))).toBe(false);
  });
});

function bytesOf(directory: string, kind: string): Buffer {
  return readFileSync(fileOf(directory, kind));
}

function fileOf(directory: string, kind = 'recommend'): string {
  return join(directory, 'itemIndex', `${kind}.lists`);
}

describe('an index in a file', () => {
  it('is found by a model that is loaded', async () => {
    const loaded = await session.loadModel(saved);
    expect(loaded.indexed).toEqual(['recommend', 'similar']);
    await loaded.prepare({ index: true });
    for (const user of users.slice(0, 9))
      expect(await loaded.recommend(user, 10, { index: 3 })).toEqual(
        await model.recommend(user, 10, { index: 3 }),
      );
    await loaded.close();
  });

  it('is refused if it is cut, damaged or of another model', async () => {
    const bad = join(folder, 'bad');
    cpSync(saved, bad, { recursive: true });
    const whole = bytesOf(saved, 'recommend');
    const loads = async () => {
      const loaded = await session.loadModel(bad);
      await loaded.prepare({ index: true });
    };
    truncateSync(fileOf(bad), whole.length - 1);
    await expect(loads()).rejects.toThrow(/has \d+ bytes, need \d+.*recommend\.lists/s);
    truncateSync(fileOf(bad), 7);
    await expect(loads()).rejects.toThrow(/cut/);
    writeFileSync(fileOf(bad), Buffer.alloc(whole.length));
    await expect(loads()).rejects.toThrow(/not an index/);
    for (const at of [20, 2000, whole.length - 5]) {
      const changed = Buffer.from(whole);
      changed[at] ^= 1;
      writeFileSync(fileOf(bad), changed);
      await expect(loads()).rejects.toThrow(/the checksum of its \w+ is wrong/);
    }
    const data = session.read.parquet(ratings);
    const other = await new ALS({ rank: 12, maxIter: 1, biases: true, seed: 3 }).fit(data);
    await other.save(bad, { overwrite: true });
    expect((await session.loadModel(bad)).indexed).toEqual([]);
    cpSync(join(saved, 'itemIndex'), join(bad, 'itemIndex'), { recursive: true });
    await expect(loads()).rejects.toThrow(/of another model/);
    const smaller = await new ALS({ rank: 4, maxIter: 1, seed: 3 }).fit(
      data.filter(col('item').gt(1_000_000)),
    );
    await smaller.save(bad, { overwrite: true });
    cpSync(join(saved, 'itemIndex'), join(bad, 'itemIndex'), { recursive: true });
    await expect(loads()).rejects.toThrow(/of another model/);
    await expect(model.saveIndex(bad)).rejects.toThrow(/another model/);
  });
});

describe('options of an index', () => {
  it('are checked', async () => {
    const wrong = (value: unknown) => model.recommend(users[0], 5, { index: value as never });
    for (const value of [0, 1.5, -1, 'on', null])
      await expect(wrong(value)).rejects.toThrow(/the option index of recommend must be/);
    await expect(model.buildIndex({ lists: 0 })).rejects.toThrow(/lists must be/);
    await expect(model.buildIndex({ lists: 1e6 })).rejects.toThrow(/lists must be/);
    await expect(model.buildIndex({ recall: 0 })).rejects.toThrow(/recall must be/);
    await expect(model.buildIndex({ seed: -1 })).rejects.toThrow(/seed must be/);
    await expect(model.buildIndex({ searches: ['x' as never] })).rejects.toThrow(/searches must be/);
    await expect(model.similar(users[0], 5, { side: 'user', index: true })).rejects.toThrow(/only on items/);
    const none = await new ALS({ rank: 4, maxIter: 1 }).fit(session.read.parquet(ratings));
    await expect(none.recommend(users[0], 5, { index: true })).rejects.toThrow(/no index for recommend/);
    expect(() => none.recommendForAllUsers(5, { index: true })).toThrow(/no index for recommend/);
    await expect(none.saveIndex(saved)).rejects.toThrow(/no index to save/);
    expect((await none.recommend(users[0], 5, { index: 'auto' })).items).toHaveLength(5);
  });
});
