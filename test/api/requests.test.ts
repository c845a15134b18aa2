/** Requests for one user: the answers are those of the search for all users, in every bit. */
import type { RecordBatch } from 'apache-arrow';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Dataset, Model, type ProgressEvent, Session } from '../../index.ts';
import { collectGarbage } from '../../engine/threads/collect-garbage.ts';
import { batchOf, randomRatings, ratingBatches, testRandom } from '../support/ratings.ts';

const rows = randomRatings(61, 60, 80, 1500);
const folder = mkdtempSync(join(tmpdir(), 'factorflow-requests-'));
let session: Session;
let model: Model;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2 });
  model = await new ALS({ rank: 6, regParam: 0.05, maxIter: 3, seed: 2, biases: true }).fit(
    session.from(ratingBatches(rows)),
  );
});
afterAll(async () => {
  await session.close();
  rmSync(folder, { recursive: true });
});

type Row = Readonly<Record<string, number | bigint | string | boolean>>;

async function rowsOf(batches: Dataset | AsyncIterable<RecordBatch>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const batch of batches) for (const row of batch.toArray()) all.push(row.toJSON());
  return all;
}

/** The rows of the batch path, user by user. */
async function listsOf(
  all: Dataset,
  user = 'user',
  item = 'item',
  value = 'prediction',
): Promise<Map<unknown, [unknown, unknown][]>> {
  const lists = new Map<unknown, [unknown, unknown][]>();
  for (const row of await rowsOf(all))
    lists.set(row[user], [...(lists.get(row[user]) ?? []), [row[item], row[value]]]);
  return lists;
}

const users = [...new Set(rows.map((row) => row.user))].sort((left, right) => left - right);
const itemsOf = (user: number) => rows.filter((row) => row.user === user).map((row) => row.item);
const exact = (): Dataset => session.from(ratingBatches(rows));

describe('a request for one user', () => {
  it('gives the list of the search for all users, with and without seen items, deny and allow lists', async () => {
    const seen = await model.exclusions(exact());
    const allow = rows.slice(0, 90).map((row) => row.item);
    for (const options of [{}, { deny: itemsOf(users[3]) }, { allow }, { allow, deny: allow.slice(0, 30) }]) {
      for (const exclude of [undefined, seen]) {
        const lists = await listsOf(
          model.recommendForAllUsers(9, { ...options, exclude: exclude && exact() }),
        );
        for (const user of users) {
          const { items, known, short, unknownItems } = await model.recommend(user, 9, {
            ...options,
            exclude,
          });
          expect(items.map(({ item, score }) => [item, score])).toEqual(lists.get(user) ?? []);
          expect([known, short, unknownItems]).toEqual([true, items.length < 9, 0]);
        }
        expect(await listsOf(model.recommendForUsers(users, 9, { ...options, exclude }))).toEqual(lists);
      }
    }
  });

  it('reads a data set of exclusions once a call, and prepared ones never', async () => {
    let reads = 0;
    const counted = session.from(
      {
        [Symbol.asyncIterator]: async function* () {
          reads++;
          yield* ratingBatches(rows);
        },
      },
      ratingBatches(rows)[0].schema,
      { replayable: true },
    );
    const few = await rowsOf(model.recommendForUsers(users.slice(0, 5), 4, { exclude: counted }));
    expect(reads).toBe(1);
    const seen = await model.exclusions(counted);
    expect([seen.pairs, seen.unknownPairs]).toEqual([rows.length, 0]);
    expect(await rowsOf(model.recommendForUsers(users.slice(0, 5), 4, { exclude: seen }))).toEqual(few);
    expect(await listsOf(model.recommendForAllUsers(4, { exclude: seen }))).toEqual(
      await listsOf(model.recommendForAllUsers(4, { exclude: counted })),
    );
    expect(reads).toBe(3);
  });

  it('counts ids of lists that are unknown, and flags a list that is short or empty', async () => {
    const all = [...new Set(rows.map((row) => row.item))];
    expect(await model.recommend(users[0], 5, { deny: [...all, 77_777, 'x'] })).toEqual({
      user: users[0],
      known: true,
      items: [],
      short: true,
      unknownItems: 2,
    });
    expect(await model.recommend(users[0], 5, { allow: [] })).toMatchObject({ items: [], short: true });
    expect((await model.recommend(users[0], 5, { allow: [...all.slice(0, 3), 77_777] })).items.length).toBe(
      3,
    );
    expect(await model.recommend(users[0], all.length + 1)).toMatchObject({
      short: true,
      items: { length: all.length },
    });
    const events: ProgressEvent[] = [];
    const stream = await model
      .recommendForUsers(users.slice(0, 3), 5, { deny: [...all.slice(2), 77_777] })
      .stream({ onEvent: (event) => events.push(event) });
    expect((await rowsOf(stream)).length).toBe(6);
    expect(events.map((event) => (event.type === 'warning' ? event.text : ''))).toEqual([
      '1 id of the lists allow and deny is unknown to the model',
      '3 users have fewer than 5 items',
    ]);
  });

  it('of an unknown user is empty, popular or an error, as the caller says', async () => {
    const counts = new Map<number, number>();
    for (const { item } of rows) counts.set(item, (counts.get(item) ?? 0) + 1);
    const popular = [...counts]
      .sort((left, right) => right[1] - left[1] || left[0] - right[0])
      .map(([item, score]) => ({ item, score }));
    expect(await model.recommend(4242, 3)).toEqual({
      user: 4242,
      known: false,
      items: [],
      short: true,
      unknownItems: 0,
    });
    expect(await model.recommend(null as never, 3)).toMatchObject({ user: null, known: false });
    expect(await model.recommend(4242, 3, { unknownUsers: 'popular', deny: [popular[1].item] })).toEqual({
      user: 4242,
      known: false,
      fallback: 'popular',
      items: [popular[0], popular[2], popular[3]],
      short: false,
      unknownItems: 0,
    });
    await expect(model.recommend('nobody', 3, { unknownUsers: 'error' })).rejects.toThrow(
      'the model has no user nobody',
    );
    const lists = await rowsOf(
      model.recommendForUsers([4242, users[1], 'nobody', users[0]], 2, { unknownUsers: 'popular' }),
    );
    expect(lists.map(({ user, fallback }) => [user, fallback])).toEqual([
      [users[0], false],
      [users[0], false],
      [users[1], false],
      [users[1], false],
      [4242, true],
      [4242, true],
    ]);
    expect(lists.slice(4).map(({ item, prediction }) => ({ item, score: prediction }))).toEqual(
      popular.slice(0, 2),
    );
  });

  it('orders equal scores by item id', async () => {
    const equal = new Model({ ...partsOf(40), itemFactors: new Float32Array(80).fill(1) });
    expect((await equal.recommend(1, 5)).items.map(({ item }) => item)).toEqual([0, 2, 4, 6, 8]);
    await equal.close();
  });

  it('is refused with a clear word for options that are wrong', async () => {
    const other = new Model(partsOf(10));
    await expect(model.recommend(users[0], 0)).rejects.toThrow(
      'n must be a whole number from 1 to 1,000, got 0',
    );
    await expect(model.recommend(users[0], 3, { exclude: exact() as never })).rejects.toThrow(
      'exclude of recommend takes exclusions. Read them once with model.exclusions(dataset)',
    );
    await expect(other.recommend(1, 3, { exclude: await model.exclusions(exact()) })).rejects.toThrow(
      'exclusions of another model',
    );
    await expect(model.recommend(users[0], 3, { deny: 5 as never })).rejects.toThrow(
      'the option deny of recommend takes a list of ids, got 5',
    );
    await expect(model.recommend(users[0], 3, { unknownUsers: 'guess' as never })).rejects.toThrow(
      'unknownUsers must be one of empty, popular, error, got "guess"',
    );
    await expect(other.recommend(9, 3, { unknownUsers: 'popular' })).rejects.toThrow('none is popular');
    expect(() => model.recommendForUsers([null as never], 3)).toThrow(
      'recommendForUsers takes ids as numbers, texts or bigints, got null',
    );
  });

  it('throws once the model or the session is closed, and others go on', async () => {
    const own = await Session.create({ device: 'cpu', workers: 1 });
    const [first, second] = [
      new Model({ ...partsOf(10), session: own }),
      new Model({ ...partsOf(10), session: own }),
    ];
    await Promise.all([first.prepare(), second.prepare()]);
    const running = first.recommend(1, 3);
    await first.close();
    expect((await running).items.length).toBe(3);
    const pairs = own.from(ratingBatches([{ user: 1, item: 1, rating: 3 }]));
    const work: readonly (() => unknown)[] = [
      () => first.recommend(1, 3),
      () => first.recommendForAllUsers(3),
      () => first.recommendForUsers([1], 3),
      () => first.recommendForAllItems(3),
      () => first.recommendForItems([1], 3),
      () => first.similarItems([1], 3),
      () => first.predict(pairs),
      () => first.evaluate(pairs),
      () => first.evaluateRanking(pairs),
      () => first.foldIn(pairs, { regParam: 1 }),
      () => first.explain([{ item: 1, rating: 3 }], 2, { regParam: 1 }),
      () => first.exclusions(pairs),
      () => first.update(pairs),
      () => first.prepare(),
    ];
    for (const begin of work)
      await expect((async () => begin())(), String(begin)).rejects.toThrow('the model is closed');
    expect(first.userFactors.numRows).toBe(first.userCount);
    expect((await second.recommend(1, 3)).items.length).toBe(3);
    const last = second.recommend(1, 3).catch(() => undefined);
    await own.close();
    await last;
    await expect(second.recommend(1, 3)).rejects.toThrow('the session is closed');
    await expect(second.recommend(-1, 3)).rejects.toThrow('the session is closed');
    await second.close();
    await expect(
      new Model({ ...partsOf(10), session: Session.withoutDevices() }).recommend(1, 3),
    ).rejects.toThrow('this session has no devices');
  });
});

/** A model of two users and some items of rank 2. */
function partsOf(items: number): ConstructorParameters<typeof Model>[0] {
  const random = testRandom(5);
  const factors = (count: number) => Float32Array.from({ length: 2 * count }, () => random() - 0.5);
  return {
    rank: 2,
    users: { type: 'int32', values: Int32Array.of(1, 4) },
    items: { type: 'int32', values: Int32Array.from({ length: items }, (_, i) => 2 * i) },
    userFactors: factors(2),
    itemFactors: factors(items),
    columns: { ...model.columns },
    coldStartStrategy: 'nan',
    session,
  };
}

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
    const lists = await listsOf(model.recommendForAllItems(3, { exclude: exact() }), 'item', 'user');
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
    const all = await listsOf(
      model.similarItems('all', 7, { similarity }),
      'item',
      'similarItem',
      'similarity',
    );
    const some = [rows[0].item, rows[9].item];
    const few = await listsOf(
      model.similarItems(some, 7, { similarity }),
      'item',
      'similarItem',
      'similarity',
    );
    for (const item of some) expect(few.get(item)).toEqual(all.get(item));
    const near = await listsOf(
      model.similarUsers([users[0]], 7, { similarity }),
      'user',
      'similarUser',
      'similarity',
    );
    expect(near.get(users[0])).toEqual(
      (await listsOf(model.similarUsers('all', 7, { similarity }), 'user', 'similarUser', 'similarity')).get(
        users[0],
      ),
    );
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
    const metadata = join(folder, 'counts', 'metadata', 'part-00000');
    writeFileSync(metadata, readFileSync(metadata, 'utf8').replace('"itemCounts":true,', ''));
    const older = await session.loadModel(join(folder, 'counts'));
    expect([older.itemCounts, (await older.recommend(id(users[2]), 4, { deny })).items]).toEqual([
      undefined,
      (await trained.recommend(id(users[2]), 4, { deny })).items,
    ]);
    await loaded.close();
  });
});
