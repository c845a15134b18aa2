/** Filters by attributes of items: the same lists as a filter of all recommendations. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ItemFilters } from '../../../api/serving/item-filters.ts';
import { col, type Model } from '../../../index.ts';
import { closeAll, errorOf, type Ids, saveModel, scratch, session, startServer } from './running-server.ts';

afterAll(closeAll);

const items = Array.from({ length: 60 }, (_, at) => at + 1);
const genres = ['Drama', 'War', 'Comedy'];
const attributes = items
  .slice(0, 50)
  .map((item) => ({ item, genre: genres[item % 3], price: item / 2, title: `Film ${item}` }));
const file = join(scratch, 'items.csv');
const lines = attributes.map(({ item, genre, price, title }) => `${item},${genre},${price},"${title}"`);
writeFileSync(file, `movieId,genre,price,title\n${lines.join('\n')}\n999,Drama,1,unknown\n`);

const ids: Ids = { type: 'int32', users: [1, 2, 3], items };
const server = await startServer(await saveModel('filters', ids), {
  data: { readFilters: (model: Model) => model.readItemFilters(file) },
});
afterAll(() => server.end());

/** The items that a request gets. */
async function found(filter: string, more = ''): Promise<number[]> {
  const { status, body } = await server.get(`/recommend/2?n=100&filter=${encodeURIComponent(filter)}${more}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return (body as { items: { item: number }[] }).items.map(({ item }) => item);
}

const best = (test: (one: (typeof attributes)[number]) => boolean) =>
  attributes
    .filter(test)
    .map(({ item }) => item)
    .toReversed();

/** A condition on the length of a text that is made of itself some times. */
function nested(times: number, make: (text: string) => string): string {
  let text = 'title';
  for (let time = 0; time < times; time++) text = make(text);
  return `length(${text}) > 3`;
}

describe('a filter', () => {
  const conditions: Readonly<Record<string, (one: (typeof attributes)[number]) => boolean>> = {
    "genre = 'Drama'": ({ genre }) => genre === 'Drama',
    "genre in ('Drama', 'War')": ({ genre }) => genre !== 'Comedy',
    'price between 5 and 10': ({ price }) => price >= 5 && price <= 10,
    "genre not in ('War') and price < 3": ({ genre, price }) => genre !== 'War' && price < 3,
    "contains(title, '7') or price > 24": ({ title, price }) => title.includes('7') || price > 24,
    "replace(lower(title), 'film ', '') || genre = '7War'": ({ item }) => item === 7,
    "title like 'Film 1%'": ({ title }) => title.startsWith('Film 1'),
    'price < 0': () => false,
    true: () => true,
  };
  it.each(Object.keys(conditions))('%s', async (condition) => {
    expect(await found(condition)).toEqual(best(conditions[condition]));
    expect(await found(condition)).toEqual(best(conditions[condition]));
  });

  it('acts with lists to deny and to allow, for popular items and for users given by ratings', async () => {
    const drama = best(({ genre }) => genre === 'Drama');
    expect(await found("genre = 'Drama'", '&deny=48,45')).toEqual(drama.filter((item) => item < 45));
    expect(await found("genre = 'Drama'", '&allow=48,47,3,60')).toEqual([48, 3]);
    const popular = await server.get(`/recommend/9?unknownUsers=popular&n=2&filter=genre%20%3D%20'Drama'`);
    expect(popular.body).toMatchObject({ fallback: 'popular', items: [{ item: 3 }, { item: 6 }] });
    const ratings = [{ item: 48, rating: 5 }];
    const { body } = await server.post('/fold-in', { ratings, n: 2, filter: "genre = 'Drama'" });
    expect(body).toMatchObject({ items: [{ item: 45 }, { item: 42 }] });
    const many = await server.post('/recommend', { users: [1, 3], n: 1, filter: 'price < 5' });
    expect(many.body).toMatchObject({
      recommendations: [{ items: [{ item: 9 }] }, { items: [{ item: 9 }] }],
    });
  });

  it.each([
    ['gnre = 1', /genre/],
    ['price', /true or false/],
    ["price < 'a'", /./],
    ['price <', /ends too early/],
    ['cast(title as int) = 1', /^cast\(title as int32\): 'Film 1' is no int32$/],
    [
      'movieId * 9007199254740993 * movieId > 3',
      /^movieId \* 9007199254740993: \d+ is beyond int64$|^movieId \* 9007199254740993 \* movieId: \d+ is beyond int64$/,
    ],
    ["title ~ '(a+)+$'", /no regular expressions/],
    ["title rlike 'a'", /no regular expressions/],
    ["REGEXP_LIKE(title, 'a')", /no regular expressions/],
    ["not (price < 1 and title regexp 'a')", /no regular expressions/],
    ["case when title ~ 'a' then true else false end", /no regular expressions/],
    [`title like '%${'_'.repeat(17)}'`, /at most 16 _/],
    ["title like replace('aaaa', 'a', '%a')", /./],
    [nested(9, (text) => `replace(${text}, 'i', 'iiiiiiiiii')`), /too long/],
    [nested(9, (text) => `replace(${text}, 'i', title)`), /too long/],
    [nested(3, (text) => `concat(${text}, ${text}, ${text})`), /too long/],
    ["length(replace('iiiiiiiiiiiiiiiiiiiiiii', 'i', '" + 'i'.repeat(500) + "')) > 3", /too long/],
    [nested(5, (text) => `lower(${text})`), /at most 4 functions/],
    [Array.from({ length: 9 }, () => "title like 'a%'").join(' or '), /at most 8 patterns/],
    ['x'.repeat(1001), /at most 1,000 characters/],
    ['  ', /at most 1,000 characters/],
    [`${'('.repeat(400)}price${')'.repeat(400)}`, /./],
    ['price = 1; drop table a', /./],
  ] as const)('%s is refused', async (condition, message) => {
    const answer = await server.get(`/recommend/2?filter=${encodeURIComponent(condition)}`);
    expect(answer).toEqual({ status: 400, body: errorOf('USAGE', message) });
  });

  it('needs attributes', async () => {
    const plain = await startServer(await saveModel('without-attributes'));
    const answer = await plain.get('/recommend/1?filter=price%3C1');
    expect(answer).toEqual({ status: 400, body: errorOf('USAGE', /--items FILE/) });
    await plain.end();
  });
});

describe('filters of the library', () => {
  it('are kept, and belong to one model', async () => {
    const folder = await saveModel('library', ids);
    const [model, other] = [await session.loadModel(folder), await session.loadModel(folder)];
    const filters = await model.readItemFilters(file, { idCol: 'movieId' });
    expect(filters).toBeInstanceOf(ItemFilters);
    const filter = filters.where('price < 5');
    expect([filter.count, filters.where('price < 5')]).toEqual([9, filter]);
    for (let least = 0; least < 1000; least++) filters.where(`price > ${least}`);
    expect(filters.where('price < 5')).not.toBe(filter);
    expect(filters.where(col('price').lt(5)).mask).toEqual(filter.mask);
    const { items: list } = await model.recommend(1, 1, { filter });
    expect(list).toMatchObject([{ item: 9 }]);
    await expect(other.recommend(1, 1, { filter })).rejects.toThrow('a filter of this model');
    await expect(model.recommend(1, 1, { filter: 'price < 5' as never })).rejects.toThrow('readItemFilters');
    await expect(model.readItemFilters(file, { idCol: 'id' })).rejects.toThrow('no column "id"; there are');
    await Promise.all([model.close(), other.close()]);
  });

  it('read text ids as they are written', async () => {
    const folder = await saveModel('text-ids', { type: 'utf8', users: ['a'], items: ['007', '7'] });
    const texts = join(scratch, 'texts.csv');
    writeFileSync(texts, 'id,price\n007,1\n7,2\n');
    const model = await session.loadModel(folder);
    const filters = await model.readItemFilters(texts);
    const { items: list } = await model.recommend('a', 2, { filter: filters.where('price = 1') });
    expect(list.map(({ item }) => item)).toEqual(['007']);
    writeFileSync(texts, 'id,price\n08,1\n');
    await expect(model.readItemFilters(texts)).rejects.toThrow('no row has the id of an item');
    await model.close();
  });
});
