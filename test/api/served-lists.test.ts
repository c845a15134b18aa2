import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, Model, Session } from '../../index.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import { batchOf, ratingBatches } from '../support/ratings.ts';
import { exact, itemsOf, listsOf, model, partsOf, rows, rowsOf, session, users } from './requested-model.ts';
import { editMetadata } from '../support/edit-metadata.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();

describe('many requests', () => {
  it('leave memory as it is', async () => {
    const own = await Session.create({ device: 'cpu', workers: 1 });
    const served = new Model({ ...partsOf(3000), session: own });
    const seen = await served.exclusions(own.from(ratingBatches([{ user: 1, item: 2, rating: 1 }])));
    const ask = async (count: number) => {
      for (let i = 0; i < count; i++) {
        await served.recommend(i % 2 === 0 ? 1 : 4, 10, { exclude: seen, deny: [2, 4, 6] });
        if (i % 4 === 0) await rowsOf(served.recommendForUsers([1], 10, { exclude: seen }));
      }
    };
    const held = () => {
      collectGarbage();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return { heapUsed, arrayBuffers };
    };
    await ask(1500);
    const before = held();
    await ask(2000);
    const after = held();
    // A request that kept only its list of ten would keep half a kilobyte, 2,000 of them a megabyte.
    expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(2 ** 20);
    expect(after.heapUsed - before.heapUsed).toBeLessThan(2 ** 20);
    await own.close();
  });

  it('are answered while another model is loaded, in threads of their own', async () => {
    await model.save(join(folder, 'other'), { overwrite: true });
    const state = { loaded: false };
    const loading = session.loadModel(join(folder, 'other')).finally(() => (state.loaded = true));
    let answered = 0;
    while (!state.loaded) answered += (await model.recommend(users[0], 3)).items.length;
    expect(answered).toBeGreaterThan(0);
    expect(await (await loading).recommend(users[0], 3)).toEqual(await model.recommend(users[0], 3));
  });
});

describe('lists of users for all items', () => {
  it('are those of brute force, without the excluded', async () => {
    const all = await listsOf(model.recommendForAllUsers(80));
    const lists = await listsOf(model.recommendForAllItems(3, { exclude: exact() }), [
      'item',
      'user',
      'prediction',
    ]);
    expect(lists.size).toBe(model.itemCount);
    const scores = new Map<string, unknown>(
      [...all].flatMap(([user, list]) =>
        list.map(([item, score]): [string, unknown] => [`${user} ${item}`, score]),
      ),
    );
    for (const [item, list] of lists) {
      const fans = users
        .filter((user) => !itemsOf(user).includes(item as number))
        .map((user): [number, number] => [user, scores.get(`${user} ${item}`) as number]);
      expect(list.map(([, score]) => score)).toEqual(
        fans
          .map(([, score]) => score)
          .sort((left, right) => right - left)
          .slice(0, 3),
      );
    }
  });
});

describe('similar rows', () => {
  it.each(['cosine', 'dot'] as const)('by %s of a few are those of all, in every bit', async (similarity) => {
    const items = (of: Parameters<typeof model.similarItems>[0]) =>
      listsOf(model.similarItems(of, 7, { similarity }), ['item', 'similarItem', 'similarity']);
    const some = [rows[0].item, rows[9].item];
    const [all, few] = [await items('all'), await items(some)];
    for (const item of some) expect(few.get(item)).toEqual(all.get(item));
    const near = (of: Parameters<typeof model.similarUsers>[0]) =>
      listsOf(model.similarUsers(of, 7, { similarity }), ['user', 'similarUser', 'similarity']);
    expect((await near([users[0]])).get(users[0])).toEqual((await near('all')).get(users[0]));
  });
});

describe.each(['int32', 'int64', 'utf8'] as const)('a saved model with %s ids', (type) => {
  const id = (value: number) =>
    type === 'int32' ? value : type === 'int64' ? BigInt(value) * 2n ** 40n : `id-${value}`;

  it('knows its ids, popular items and lists again, and one without counts is served too', async () => {
    const batch = batchOf({
      user: { type, values: rows.map((row) => id(row.user)) },
      item: { type, values: rows.map((row) => id(row.item)) },
      rating: { type: 'float64', values: rows.map((row) => row.rating) },
    });
    const trained = await new ALS({ rank: 3, maxIter: 2 }).fit(session.from([batch]));
    await trained.save(join(folder, type));
    const loaded = await session.loadModel(join(folder, type));
    expect(loaded.itemCounts).toEqual(trained.itemCounts);
    const deny = [id(rows[0].item), id(rows[5].item)];
    expect(await loaded.recommend(id(users[2]), 4, { deny })).toEqual(
      await trained.recommend(id(users[2]), 4, { deny }),
    );
    expect(await loaded.recommend(id(999), 4, { unknownUsers: 'popular' })).toEqual(
      await trained.recommend(id(999), 4, { unknownUsers: 'popular' }),
    );
    for (const user of users) expect(loaded.hasUser(id(user))).toBe(true);
    expect(
      [id(999), id(-999), '', 'id-', 2n ** 70n, -(2n ** 70n), 0.5].map((other) => loaded.hasUser(other)),
    ).toEqual(Array.from({ length: 7 }, () => false));
    expect([loaded.hasItem(id(rows[0].item)), loaded.hasItem(id(1))]).toEqual([true, false]);
    await loaded.save(join(folder, 'counts'), { overwrite: true });
    rmSync(join(folder, 'counts', 'itemCounts'), { recursive: true });
    await expect(session.loadModel(join(folder, 'counts'))).rejects.toThrow(/itemCounts/);
    editMetadata(join(folder, 'counts'), (line) => line.replace('"itemCounts":true,', ''));
    const older = await session.loadModel(join(folder, 'counts'));
    expect([older.itemCounts, (await older.recommend(id(users[2]), 4, { deny })).items]).toEqual([
      undefined,
      (await trained.recommend(id(users[2]), 4, { deny })).items,
    ]);
    if (type === 'utf8')
      await expect(loaded.predict(exact()).toArray()).rejects.toThrow(
        'ids are int32 here, but utf8 in the data that they are looked up in',
      );
    await loaded.close();
  });
});
