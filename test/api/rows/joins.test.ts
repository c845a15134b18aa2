/**
 * Joins of data sets: DuckDB's rows for random tables with filters around the join, errors, and pruned
 * inputs.
 */
import { Dictionary, Int32, Int64, Table, TimestampMillisecond, Utf8, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { cpuSession } from '../../support/cpu-session.ts';
import { col, type Dataset } from '../../../index.ts';
import { type JoinKind } from '../../../operators/dataflow/join/join-columns.ts';

const session = await cpuSession({ workers: 3, splitBytes: 2000 });

const users = () =>
  session.fromRows([
    { id: 1, name: 'a', age: 30 },
    { id: 2, name: 'b', age: null },
    { id: 4, name: 'd', age: 50 },
  ]);
const ratings = () =>
  session.fromRows([
    { user: 2, item: 10, rating: 3 },
    { user: 1, item: 10, rating: 4 },
    { user: 3, item: 11, rating: 5 },
    { user: 2, item: 12, rating: 1 },
  ]);

async function rowsOf(rows: Dataset): Promise<unknown[][]> {
  return (await rows.toArray()).map((row) => Object.values(row));
}

describe('crossJoin and asOfJoin', () => {
  it('gives each row with each of the others', async () => {
    const crossed = users().select('id').crossJoin(ratings().select('user', 'item').limit(2));
    expect(await rowsOf(crossed.orderBy('id', 'user'))).toEqual(
      [1, 2, 4].flatMap((id) => [
        [id, 1, 10],
        [id, 2, 10],
      ]),
    );
    expect(() => users().crossJoin(3 as never)).toThrow('crossJoin takes a data set, got 3');
  });

  it('keeps dictionaries of both sides apart', async () => {
    const words = vectorFromArray(['a', 'b', null, 'c'], new Dictionary(new Utf8(), new Int32()));
    const { batches, schema } = new Table({ word: words });
    const rows = session.from([batches[0].slice(0, 2), batches[0].slice(2)], schema);
    const other = rows.select(col('word').as('second')).orderBy(col('second').desc()).limit(2);
    expect(await rowsOf(rows.crossJoin(other).orderBy('word', 'second'))).toEqual(
      [null, 'a', 'b', 'c'].flatMap((word) => [
        [word, 'b'],
        [word, 'c'],
      ]),
    );
  });

  it('takes the latest row of a key, the last of equal times, and nulls match nothing', async () => {
    const orders = session.fromRows([
      { item: 1, at: 5 },
      { item: 1, at: 3 },
      { item: 1, at: 1 },
      { item: 2, at: 9 },
      { item: 1, at: null },
    ]);
    const prices = session.fromRows([
      { item: 1, since: 5, price: 50 },
      { item: 1, since: 3, price: 30 },
      { item: 1, since: 3, price: 31 },
      { item: 1, since: null, price: 0 },
      { item: null, since: 1, price: 0 },
    ]);
    const at = { left: 'at', right: 'since' } as const;
    expect(await rowsOf(orders.asOfJoin(prices, { on: 'item', at }))).toEqual([
      [1, 5, 5, 50],
      [1, 3, 3, 31],
    ]);
    const named = prices.withColumnRenamed('since', 'at');
    const strict = orders.asOfJoin(named, { on: 'item', at: 'at', how: 'left', strict: true });
    expect(await rowsOf(strict)).toEqual([
      [1, 5, 31],
      [1, 3, null],
      [1, 1, null],
      [2, 9, null],
      [1, null, null],
    ]);
    const every = orders.asOfJoin(prices.drop('item'), { at });
    expect(await rowsOf(every.filter(col('price').lt(50)).select('item', 'price'))).toEqual([
      [1, 31],
      [1, 0],
    ]);
    expect(() => orders.asOfJoin(named, { at: 'at', how: 'full' as never })).toThrow(
      'the how of asOfJoin must be inner or left, got "full"',
    );
  });
});

describe('join', () => {
  it('takes names, pairs of names, and a kind', async () => {
    const items = session.fromRows([
      { item: 10, title: 'ten' },
      { item: 11, title: null },
    ]);
    expect(await ratings().join(items, 'item').toArray()).toEqual([
      { item: 10, user: 2, rating: 3, title: 'ten' },
      { item: 10, user: 1, rating: 4, title: 'ten' },
      { item: 11, user: 3, rating: 5, title: null },
    ]);
    const keys = { left: 'user', right: ['id'] };
    expect(await rowsOf(ratings().join(users(), keys, 'left'))).toEqual([
      [2, 10, 3, 'b', null],
      [1, 10, 4, 'a', 30],
      [3, 11, 5, null, null],
      [2, 12, 1, 'b', null],
    ]);
    expect(await rowsOf(ratings().join(users(), keys, 'anti'))).toEqual([[3, 11, 5]]);
    expect(
      await rowsOf(ratings().join(users(), keys, { how: 'full' }).filter(col('rating').isNull())),
    ).toEqual([[4, null, null, 'd', 50]]);
    const again = ratings().join(ratings(), ['user', 'item'], { suffix: '_right' });
    expect((await again.schema()).fields.map(({ name }) => name)).toEqual([
      'user',
      'item',
      'rating',
      'rating_right',
    ]);
    expect(await again.count()).toBe(4);
  });

  it('may follow joins, and be part of unions', async () => {
    const named = ratings().join(users(), { left: 'user', right: 'id' });
    const twice = named
      .join(users().select(col('name'), col('id').as('key')), 'name')
      .filter(col('key').gt(1));
    expect(await rowsOf(twice.select('name', 'item', 'key'))).toEqual([
      ['b', 10, 2],
      ['b', 12, 2],
    ]);
    expect(await twice.union(twice).filter(col('item').eq(12)).count()).toBe(2);
    expect(
      await ratings().union(ratings()).join(users(), { left: 'user', right: 'id' }, 'semi').count(),
    ).toBe(6);
  });

  it('compares integers of two types, times of two units, and dictionaries with texts', async () => {
    const big = 2n ** 53n + 1n;
    const narrow = session.from(
      new Table({
        k: vectorFromArray([1, 2, null], new Int32()),
        t: vectorFromArray(['a', 'b', 'c']),
        at: vectorFromArray([0, 5000, 1], new TimestampMillisecond()),
      }).batches,
    );
    const wide = session.from(
      new Table({
        k: vectorFromArray([2n, big, null], new Int64()),
        w: vectorFromArray(['x', 'y', 'z'], new Utf8()),
      }).batches,
    );
    const joined = narrow.join(wide, 'k', 'full');
    expect(String((await joined.schema()).fields[0])).toBe('k: Int64');
    expect((await rowsOf(joined.select('k', 't', 'w'))).map(String).sort()).toEqual(
      [
        [1n, 'a', null],
        [2n, 'b', 'x'],
        [null, 'c', null],
        [big, null, 'y'],
        [null, null, 'z'],
      ]
        .map(String)
        .sort(),
    );
    expect(await rowsOf(joined.filter(col('t').eq('b').and(col('k').gt(1))).select('w'))).toEqual([['x']]);
    const texts = session.fromRows([{ t: 'c', v: 1 }]);
    expect(await rowsOf(narrow.select('t').join(texts, 't'))).toEqual([['c', 1]]);
    const micros = narrow.cast({ at: 'timestamp' }).select(col('at').as('when'), col('t').as('tt'));
    expect(await rowsOf(narrow.join(micros, { left: 'at', right: 'when' }).select('t', 'tt'))).toEqual([
      ['a', 'a'],
      ['b', 'b'],
      ['c', 'c'],
    ]);
  });

  it('reads the columns of both inputs that are needed, and asks them conditions on their columns', async () => {
    const [left, right] = [ratings(), users()];
    const text = await left
      .join(right, { left: 'user', right: 'id' })
      .filter(col('age').gt(20).and(col('rating').gt(2)).and(col('user').lt(9)))
      .select('item', 'name')
      .explain();
    const [, optimized] = text.split('Optimized plan');
    expect(optimized).toMatch(/left input of the join/);
    expect(optimized).toMatch(/filter predicate: rating > 2 and user < 9; keeps: user, item/);
    expect(optimized).toMatch(/filter predicate: age > 20 and id < 9; keeps: id, name/);
  });

  it('says what it cannot join', async () => {
    const [left, right] = [ratings(), users()];
    const wrong = (on: unknown, how?: unknown) => () => left.join(right, on as never, how as JoinKind);
    expect(wrong('id', 'outer')).toThrow(
      'there is no join "outer". Did you mean full? The kinds are: inner, left, right, full, semi, anti',
    );
    expect(wrong('id', 'left_semi')).toThrow(/Did you mean semi\?/);
    expect(wrong('id', 'lef')).toThrow(/Did you mean left\?/);
    expect(wrong('id', { type: 'left' })).toThrow(/unknown option type of join/);
    expect(wrong('id', { suffix: '' })).toThrow(/the suffix of a join must be a text/);
    expect(wrong([])).toThrow('join takes one key or more');
    expect(wrong(['user', 'user'])).toThrow('the key "user" is named twice');
    expect(wrong(['user', 3])).toThrow('a key of a join must be the name of a column, got 3');
    expect(wrong(undefined)).toThrow(/join takes names of columns, or { left, right }, got undefined/);
    expect(wrong(col('user'))).toThrow('or { left, right }, got an object of class Column. Write join(');
    expect(wrong({ left: ['user'], right: ['id', 'age'] })).toThrow(
      /1 columns of the left cannot be compared with 2/,
    );
    expect(() => left.join('users' as never, 'user' as never)).toThrow('join takes a data set, got "users"');
    const other = (await cpuSession({ workers: 1 })).fromRows([{ user: 1 }]);
    expect(() => left.join(other, 'user')).toThrow('a join takes data sets of one session');
    await expect(left.join(right, 'user').count()).rejects.toThrow(
      'join: the right side has no column "user". The columns are: id, name, age',
    );
    await expect(left.join(right, { left: 'itm', right: 'id' }).schema()).rejects.toThrow(
      /Did you mean item\?/,
    );
    await expect(left.join(right, { left: 'user', right: 'name' }).explain()).rejects.toThrow(
      /the key "user" of the left is .*, and "name" of the right is Utf8. Cast one of them to the other's type, as cast\({ user: 'utf8' }\) does/,
    );
    await expect(left.join(left, 'user').stream({ columns: ['user'] })).rejects.toThrow(
      /both sides have a column "item"/,
    );
    const lists = session.from(new Table({ k: vectorFromArray([[1]]) }).batches);
    await expect(lists.join(lists, 'k').count()).rejects.toThrow(
      /the key "k" is List<.*, whose values are not compared/,
    );
    const twice = left.withColumnRenamed('item', 'rating_2');
    await expect(twice.join(left, 'user', { suffix: '_2' }).schema()).rejects.toThrow(
      /the column "rating_2" twice/,
    );
  });

  it('is cancelled', async () => {
    const stop = new AbortController();
    const rows = session.fromRows(Array.from({ length: 400 }, () => ({ k: 1 })));
    const stream = await rows.join(rows, 'k').stream({ signal: stop.signal });
    await expect(
      (async () => {
        for await (const batch of stream) {
          expect(batch.numRows).toBeGreaterThan(0);
          stop.abort();
        }
      })(),
    ).rejects.toThrow(/cancel/i);
  });
});

it('exchanges by the bytes of pairs, not of the inputs, which may be far fewer', async () => {
  const side = (name: string) =>
    session.fromRows(Array.from({ length: 900 }, (_, i) => ({ key: i % 3, [name]: i })));
  const pairs = side('a').join(side('b'), 'key');
  const text = await pairs.groupBy('a', 'b').count().explain({ analyze: true });
  const [, runs] = /group-rows: 270,000 rows in (\d+) batches/.exec(text) ?? [];
  expect(Number(runs), text).toBeGreaterThan(36);
});
