/** Requests for one user: every bit of the response is the same as in the search for all users. */
import { describe, expect, it } from 'vitest';
import { Model, type ProgressEvent, Session } from '../../index.ts';
import { ratingBatches } from '../support/ratings.ts';
import { exact, itemsOf, listsOf, model, partsOf, rows, rowsOf, session, users } from './requested-model.ts';

describe('a request for one user', () => {
  it('gives the list of the search for all users, with and without seen items, deny and allow lists', async () => {
    const seen = await model.exclusions(exact());
    const allow = rows.slice(0, 90).map((row) => row.item);
    for (const [options, exclude] of [
      [{}, undefined],
      [{ deny: itemsOf(users[3]) }, seen],
      [{ allow, deny: allow.slice(0, 30) }, undefined],
    ] as const) {
      const lists = await listsOf(model.recommendForAllUsers(9, { ...options, exclude: exclude && exact() }));
      for (const user of users) {
        const found = await model.recommend(user, 9, { ...options, exclude });
        expect(found.items.map(({ item, score }) => [item, score])).toEqual(lists.get(user) ?? []);
        expect(found).toMatchObject({ known: true, short: found.items.length < 9, unknownItems: 0 });
      }
      expect(await listsOf(model.recommendForUsers(users, 9, { ...options, exclude }))).toEqual(lists);
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
      'unknownUsers must be empty, popular or error, got "guess"',
    );
    await expect(other.recommend(9, 3, { unknownUsers: 'popular' })).rejects.toThrow(
      'popular items are unknown',
    );
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
