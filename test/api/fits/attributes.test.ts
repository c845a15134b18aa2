import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  ALS,
  type AlsOptions,
  chooseTrainer,
  DataError,
  type Model,
  type ProgressEvent,
  SGD,
  UsageError,
} from '../../../index.ts';
import { attributeEffects } from '../../../api/reports/attribute-effects.ts';
import { CounterRandom } from '../../../engine/random.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const session = await cpuSession();
const folder = temporaryFolder();
const genres = ['drama', 'war', 'comedy', 'crime'];
const random = new CounterRandom(11);
const products = Array.from({ length: 60 }, (_, item) => ({
  sku: `p${String(item).padStart(2, '0')}`,
  genre: genres[item % 4],
  price: 10 + ((item * 7) % 13),
}));
const customers = Array.from({ length: 80 }, (_, user) => ({
  customer: user,
  country: user % 2 === 0 ? 'de' : 'fr',
}));
/** Every fifth product has no rating, and neither have the last two users. */
const isRated = (user: number, item: number) => item % 5 < 4 && user < 78;
/** Users of even numbers like drama and war, others comedy and crime. */
const likes = (user: number, item: number) => item % 4 < 2 === (user % 2 === 0);
const rows = customers.flatMap(({ customer }, user) =>
  products.flatMap(({ sku }, item) =>
    isRated(user, item) && random.uniform(user * 60 + item) < 0.5
      ? [{ customer, sku, stars: likes(user, item) ? 5 : 1 }]
      : [],
  ),
);
const columns = { user: 'customer', item: 'sku', rating: 'stars' } as const;
const ratings = session.fromRows(rows, { columns });
const liked = session.fromRows(
  rows.filter(({ stars }) => stars === 5),
  { columns },
);
const itemAttributes = { data: session.fromRows(products), id: 'sku', columns: ['genre', 'price'] };
const userAttributes = { data: session.fromRows(customers), columns: ['country'] };
const als = (options: AlsOptions = {}) => new ALS({ rank: 4, maxIter: 8, ...options });

/** The share of the products without ratings among a user's best that the user likes. */
async function hits(model: Model, user: number): Promise<number> {
  const { items } = await model.recommend(user, 6, {
    allow: products.filter((_, i) => i % 5 === 4).map(({ sku }) => sku),
  });
  return items.filter(({ item }) => likes(user, Number(String(item).slice(1)))).length / 6;
}

describe('a fit with attributes', () => {
  it.each(['explicit', 'implicit'])(
    'of %s data recommends products without ratings by their attributes',
    async (kind) => {
      const model = await als({ itemAttributes, implicitPrefs: kind === 'implicit' }).fit(
        kind === 'implicit' ? liked : ratings,
      );
      expect(model.itemCount).toBe(60);
      expect(model.itemCounts?.filter((count) => count === 0)).toHaveLength(12);
      for (const user of [0, 1, 30, 31]) expect([user, await hits(model, user)]).toEqual([user, 1]);
      const [best] = (await model.similar('p04', 1)).similar;
      expect(Number(String(best.item).slice(1)) % 4 < 2).toBe(true);
      await model.close();
    },
  );

  it('is evaluated on pairs with and without ratings apart, loaded as well', async () => {
    const model = await als({ itemAttributes, userAttributes }).fit(ratings);
    const test = session.fromRows(
      customers
        .slice(60)
        .flatMap(({ customer }, at) =>
          products
            .slice(0, 10)
            .map(({ sku }, item) => ({ customer, sku, stars: likes(60 + at, item) ? 5 : 1 })),
        )
        .concat({ customer: 999, sku: 'p00', stars: 3 }, { customer: 61, sku: 'none', stars: 3 }),
      { columns },
    );
    const found = await model.evaluate(test);
    // Of the 20 users two have no ratings, and of the ten products two.
    expect([found.pairs, found.coldPairs, found.warm?.pairs, found.cold?.pairs]).toEqual([
      202,
      2,
      18 * 8,
      2 * 10 + 18 * 2,
    ]);
    const { warm, cold } = found;
    expect(cold!.rmse).toBeGreaterThan(0);
    expect((144 * warm!.rmse ** 2 + 56 * cold!.rmse ** 2) / 200).toBeCloseTo(found.rmse ** 2, 9);
    const ranked = await model.evaluateRanking(test, { minRating: 4, k: 5, exclude: ratings });
    expect(ranked).toMatchObject({ coldPairs: 0, coldUsers: 0, coldItems: 0 });
    expect(ranked.cold!.metrics.auc).toBeGreaterThan(0.6);
    await model.save(join(folder, 'both'));
    const loaded = await session.loadModel(join(folder, 'both'));
    expect(loaded.userCounts).toEqual(model.userCounts);
    expect((await loaded.evaluate(test)).cold).toEqual(cold);
    const items = await als({ itemAttributes }).fit(ratings);
    await items.save(join(folder, 'items'));
    expect((await session.loadModel(join(folder, 'items'))).userCounts).toBeUndefined();
  });

  it('knows users without ratings by theirs', async () => {
    const model = await als({ itemAttributes, userAttributes }).fit(ratings);
    expect(model.userCount).toBe(80);
    for (const user of [78, 79]) expect([user, await hits(model, user)]).toEqual([user, 1]);
    const made = await model.withUsers([{ customer: 501, country: 'fr' }]);
    expect(await hits(made, 501)).toBe(1);
    await Promise.all([model.close(), made.close()]);
  });

  it('trains with attributes of half of the items, and an item without them as before', async () => {
    const half = session.fromRows(products.filter((_, item) => item % 8 < 4 || item % 5 === 4));
    const model = await als({ itemAttributes: { data: half, columns: ['genre'] } }).fit(ratings);
    expect(model.itemCount).toBe(60);
    for (const user of [0, 1]) expect([user, await hits(model, user)]).toEqual([user, 1]);
    const own = products.filter((_, item) => item % 8 >= 4 && item % 5 < 4);
    for (const { sku } of own.slice(0, 5))
      expect((model.score(0, sku) ?? 0) > 3).toBe(likes(0, Number(sku.slice(1))));
    await model.close();
  });

  it('keeps the lists of users apart who share their only attribute', async () => {
    // All users have one country, so only their ratings tell them apart.
    const data = session.fromRows(customers.map(({ customer }) => ({ customer, country: 'de' })));
    const model = await als({ userAttributes: { data } }).fit(ratings);
    const [even, odd] = await Promise.all([0, 1].map((user) => model.recommend(user, 20)));
    const drama = ({ item }: { readonly item: unknown }) => likes(0, Number(String(item).slice(1)));
    expect([even.items.every(drama), odd.items.some(drama)]).toEqual([true, false]);
    await model.close();
  });

  it('says which columns became what, and how many items they are of', async () => {
    const notes: string[] = [];
    const onEvent = (event: ProgressEvent) => void (event.type === 'note' && notes.push(event.text));
    await als({ itemAttributes: { ...itemAttributes, columns: { genre: 'category', price: 'number' } } }).fit(
      ratings,
      { onEvent },
    );
    expect(notes).toEqual(
      expect.arrayContaining([
        'attributes of 60 items, 6 features: genre: category, 4 values; price: number, mean 15.87, deviation 3.748',
      ]),
    );
    expect(notes).toContain('48 of 48 items with ratings have attributes, and 12 other items');
  });

  it('adds after the training exactly what it adds by itself', async () => {
    const all = await als({ itemAttributes }).fit(ratings);
    const rated = {
      ...itemAttributes,
      data: session.fromRows(products.filter((_, i) => i % 5 < 4)),
      columns: { genre: 'category', price: 'number' },
    } as const;
    const some = await als({ itemAttributes: rated }).fit(ratings);
    expect(some.itemCount).toBe(48);
    // The encoding of numbers depends on all rows, that of genres does not.
    const made = await (
      await als({ itemAttributes: { ...rated, columns: ['genre'] } }).fit(ratings)
    ).withItems(products);
    const whole = await als({ itemAttributes: { ...itemAttributes, columns: ['genre'] } }).fit(ratings);
    expect(made.itemArrays).toEqual(whole.itemArrays);
    expect(all.itemCount).toBe(60);
  });

  it('survives saving, and updates keep its attributes', async () => {
    const model = await als({ itemAttributes }).fit(ratings);
    await model.save(join(folder, 'model'));
    const loaded = await session.loadModel(join(folder, 'model'));
    expect(loaded.itemArrays).toEqual(model.itemArrays);
    const updated = await loaded.update(
      session.fromRows([{ customer: 0, sku: 'p04', stars: 1 }], { columns }),
    );
    expect(updated.itemCounts?.[4]).toBe(1);
    const made = await updated.withItems([{ ...products[8], sku: 'p99' }]);
    expect(made.score(1, 'p99')).toBeCloseTo(loaded.score(1, 'p08') ?? 0, 1);
  });

  it('has a plan with its sizes, by which a fit can run', async () => {
    const trainer = als({ itemAttributes, userAttributes });
    const plan = await trainer.plan(ratings);
    expect(plan.plan.sizes).toMatchObject({
      itemFeatures: 18,
      itemEntries: 48 * 3,
      userFeatures: 3,
      userEntries: 78 * 2,
    });
    const [one, other] = [await trainer.fit(ratings, { plan }), await trainer.fit(ratings)];
    expect(one.itemArrays).toEqual(other.itemArrays);
  });

  it('shows the attributes that move predictions most', async () => {
    const model = await als({ itemAttributes }).fit(ratings);
    const effects = attributeEffects(model, 'item', 3) ?? [];
    expect(effects.map(({ column }) => column)).toEqual(['genre', 'genre', 'genre']);
    expect(effects[0].effect).toBeGreaterThan(0.5);
    expect(attributeEffects(model, 'user', 3)).toBeUndefined();
  });
});

describe('options of attributes', () => {
  const data = session.fromRows(products);
  const bad: readonly [unknown, string][] = [
    [5, 'the option itemAttributes takes options such as'],
    [{ data: 5 }, 'data of the option itemAttributes takes a data set'],
    [{ data, ids: 'sku' }, 'unknown option ids of the option itemAttributes'],
    [{ data, id: 5 }, 'id of the option itemAttributes is the name of a column, got 5'],
    [{ data, columns: [] }, 'columns of the option itemAttributes are names of columns'],
    [{ data, columns: ['genre', 'genre'] }, 'columns of the option itemAttributes are names of columns'],
    [
      { data, columns: { genre: 'categories' } },
      'the kind of genre in the option itemAttributes must be one of category',
    ],
    [{ data, id: 'sku', columns: ['sku'] }, 'columns of the option itemAttributes name the column of ids'],
    [{ data, minCount: 0 }, 'minCount must be'],
  ];
  it.each(bad)('%o: refused before anything is read', (given, message) => {
    expect(() => als({ itemAttributes: given as never })).toThrow(message);
    expect(() => als({ itemAttributes: given as never })).toThrow(UsageError);
  });

  it('find the ids by the name of the ratings, else by a usual name', async () => {
    const other = session.fromRows(products.map(({ sku, genre }) => ({ item_id: sku, genre })));
    expect((await als({ itemAttributes: { data: other } }).fit(ratings)).itemCount).toBe(60);
    const none = session.fromRows(products.map(({ sku, genre }) => ({ code: sku, genre })));
    await expect(als({ itemAttributes: { data: none } }).fit(ratings)).rejects.toThrow(
      'the attributes have no column of item ids; there are: code, genre',
    );
  });

  it('refuse ids twice, ids of another type, and attributes of other items', async () => {
    const failure = (list: readonly object[]) =>
      als({ itemAttributes: { data: session.fromRows(list as object[]), id: 'sku' } })
        .fit(ratings)
        .catch((error: unknown) => error);
    const twice = await failure([...products, products[3]]);
    expect(twice).toBeInstanceOf(DataError);
    expect(String(twice)).toContain('the id p03 has attributes twice, in rows 4 and 61');
    expect(String(await failure([{ sku: 1, genre: 'a' }]))).toContain('ids are utf8 here, but int32');
    expect(String(await failure([{ sku: 'q', genre: 'a' }]))).toContain(
      'no row of the attributes has the id of a rating',
    );
  });

  it('are refused by SGD, and chooseTrainer takes ALS', async () => {
    expect(() => new SGD({ itemAttributes } as never)).toThrow('itemAttributes cannot be used with SGD');
    const { trainer, reason } = await chooseTrainer(ratings, { rank: 4, itemAttributes });
    expect(trainer).toBeInstanceOf(ALS);
    expect(reason).toBe('ALS, since SGD does not train with attributes');
  });
});
