import type { RecordBatch } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import type { RowInput, RowSourceOptions } from '../../connectors/rows/row-source.ts';
import { ALS } from '../../index.ts';
import { randomRatings, ratingBatch, ratingBatches } from '../support/ratings.ts';
import { cpuSession } from '../support/cpu-session.ts';

const session = await cpuSession({ workers: 1 });

async function read(
  rows: RowInput,
  options: RowSourceOptions & { readonly columns?: readonly string[] } = {},
) {
  const { columns, ...given } = options;
  const batches: RecordBatch[] = [];
  for await (const batch of await session.fromRows(rows, given).stream({ columns })) batches.push(batch);
  return batches;
}

/** Types by column, and the values of all batches. */
async function contents(rows: RowInput, options: Parameters<typeof read>[1] = {}) {
  const batches = await read(rows, options);
  const types = Object.fromEntries(batches[0].schema.fields.map(({ name, type }) => [name, String(type)]));
  return {
    types,
    values: batches.flatMap((batch) =>
      batch.toArray().map((row) => Object.values((row as { toJSON(): object }).toJSON())),
    ),
  };
}

const page = (from: number, count: number, more: (i: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) => ({ user: from + i, item: 5, rating: 4, ...more(from + i) }));

describe('rows', () => {
  it('become columns of the types that their values have', async () => {
    const at = new Date(1_700_000_000_123);
    const rows = [
      { user: 1, big: 2 ** 40, id: 7n, rating: 4, name: 'ä', liked: true, at, late: null },
      { user: 2, big: 3, id: 2n ** 60n, rating: 4.5, name: '', liked: false, at, late: 3 },
    ];
    const { types, values } = await contents(rows);
    expect(types).toEqual({
      user: 'Int32',
      big: 'Int64',
      id: 'Int64',
      rating: 'Float64',
      name: 'Utf8',
      liked: 'Bool',
      at: 'Timestamp<MILLISECOND>',
      late: 'Int32',
    });
    expect(values).toEqual([
      [1, 2n ** 40n, 7n, 4, 'ä', true, at.getTime(), null],
      [2, 3n, 2n ** 60n, 4.5, '', false, at.getTime(), 3],
    ]);
  });

  it.each<[string, () => RowInput]>([
    ['an array', () => page(0, 10)],
    ['an array of pages', () => [page(0, 4), [], page(4, 6)]],
    ['a generator', () => page(0, 10).values()],
    ['a set', () => new Set(page(0, 10))],
    [
      'an async generator of rows',
      () =>
        (async function* () {
          yield* page(0, 10);
        })(),
    ],
    [
      'an async generator of pages',
      () =>
        (async function* () {
          yield page(0, 4);
          yield page(4, 6);
        })(),
    ],
    ['a function', () => () => page(0, 10).values()],
    ['an async function', () => async () => page(0, 10)],
  ])('come from %s', async (_, make) => {
    const { values } = await contents(make());
    expect(values).toEqual(page(0, 10).map((row) => Object.values(row)));
  });

  it('come in batches of bounded size', async () => {
    const pages = (function* () {
      for (let i = 0; i < 30; i++) yield page(i * 5000, 5000);
    })();
    expect((await read(pages)).map(({ numRows }) => numRows)).toEqual([65_536, 65_536, 18_928]);
  });

  it('may lack an optional column for whole pages; a later page brings its type', async () => {
    const pages = (function* () {
      yield page(0, 70_000, () => ({ note: null }));
      yield page(70_000, 10, () => ({ note: undefined }));
      yield page(70_010, 10, (i) => ({ note: `n${i}` }));
      yield page(70_020, 10);
    })();
    const { types, values } = await contents(pages, { columns: ['note'] });
    expect(types).toEqual({ note: 'Utf8' });
    expect([values[0], values[70_010], values[70_025]]).toEqual([[null], ['n70010'], [null]]);
  });

  it('may have columns with the names of what every object has', async () => {
    const rows = [JSON.parse('{"user":1,"constructor":2,"toString":"a","__proto__":3}') as object];
    const { types } = await contents(rows);
    expect(Object.entries(types)).toEqual([
      ['user', 'Int32'],
      ['constructor', 'Int32'],
      ['toString', 'Utf8'],
      ['__proto__', 'Int32'],
    ]);
  });

  it('of nulls alone make a column of nulls', async () => {
    const { values } = await contents([{ user: 1, note: null }, { user: 2 }]);
    expect(values).toEqual([
      [1, null],
      [2, null],
    ]);
  });

  it('leave objects out, which an error for a missing column says', async () => {
    const rows = [{ user: { id: 1 }, item: 2, rating: 3, tags: ['a'], deep: [['a']] }];
    expect((await contents(rows)).types).toEqual({ item: 'Int32', rating: 'Int32', tags: 'List<Utf8>' });
    await expect(new ALS({ rank: 2, maxIter: 1 }).fit(session.fromRows(rows))).rejects.toThrow(
      /there is no column "user"; there are: item \(Int32\), rating .*left out, since their values are objects, bytes, or lists of lists or objects: user, deep/,
    );
  });

  it('of mixed kinds are an error that names row, column and values, unless the column is not needed', async () => {
    const rows = [
      { user: 1, item: 2 },
      { user: 'u7', item: 3 },
    ];
    await expect(read(rows)).rejects.toThrow(
      /user is the text "u7", and row 1 has the number 1 \(row 2\).*types: \{ user: 'utf8' \}/s,
    );
    expect((await contents(rows, { columns: ['item'] })).values).toEqual([[2], [3]]);
    expect((await contents(rows, { types: { user: 'utf8' } })).values).toEqual([
      ['1', 2],
      ['u7', 3],
    ]);
    await expect(read([{ user: 1 }, { user: [2] }])).rejects.toThrow(
      'user is an array, and row 1 has the number 1',
    );
    await expect(read([{ at: new Date() }, { at: new Date(Number.NaN) }])).rejects.toThrow(
      'at is an invalid Date',
    );
    await expect(read([{ user: 2n ** 70n }])).rejects.toThrow(
      `user is the bigint ${2n ** 70n}, which Int64 of the first rows cannot hold`,
    );
  });

  it('that are no objects are named', async () => {
    await expect(read([{ user: 1 }, 5 as unknown as object])).rejects.toThrow(
      /the row is the number 5 in place of an object \(row 2\)/,
    );
    await expect(read([{ user: 1 }, null as unknown as object].values())).rejects.toThrow(
      /the row is null in place of an object \(row 2\)/,
    );
    await expect(read([])).rejects.toThrow('there are no rows');
    await expect(read([{}])).rejects.toThrow('the row has no columns');
    await expect(read(ratingBatches(randomRatings(1, 5, 5, 9)))).rejects.toThrow(
      /Arrow record batches.*session\.from/s,
    );
    expect(() => session.fromRows({ rows: [] } as never)).toThrow(
      'fromRows takes an iterable of rows, got an object',
    );
    expect(() => session.fromRows(Promise.resolve([]) as never)).toThrow(/got a promise.*Await it/s);
    expect(() => session.fromRows('text' as never)).toThrow('got the text "text"');
    expect(() => session.fromRows([], { types: { user: 'int' } } as never)).toThrow(
      'unknown column type "int"',
    );
    expect(() => session.from(page(0, 1) as never)).toThrow('session.fromRows(rows)');
  });

  it('of an iterator can be read once, and its end is told to it when reading stops early', async () => {
    let ended = false;
    const rows = session.fromRows(
      (function* () {
        try {
          while (true) yield* page(0, 10);
        } finally {
          ended = true;
        }
      })(),
    );
    for await (const batch of rows) if (batch.numRows > 0) break;
    expect(ended).toBe(true);
    await expect(rows.count()).rejects.toThrow(
      /read only once, and they were read already.*function that makes the rows anew/s,
    );
  });

  it('of a function that gives one iterator twice are an error, not no rows', async () => {
    const one = page(0, 10).values();
    await expect(read(() => one)).rejects.toThrow('the function gave the same iterator again');
  });
});

describe('training on rows', () => {
  const rows = randomRatings(9, 50, 40, 900);
  const als = () => new ALS({ rank: 3, maxIter: 3, seed: 4, regParam: 0.1 });
  const factors = async (input: RowInput) => (await als().fit(session.fromRows(input))).itemArrays;

  it('gives the model of the same batches, from an array, pages and a cursor', async () => {
    const expected = (await als().fit(session.from([ratingBatch(rows)]))).itemArrays;
    for (const input of [
      rows,
      [rows.slice(0, 100), rows.slice(100)],
      () => rows.values(),
      rows.map((row) => ({ ...row, rating: String(row.rating), extra: {} })).values(),
    ])
      expect(await factors(input)).toEqual(expected);
  });

  it('names the row of a missing or wrong value', async () => {
    await expect(factors([...rows, { user: 1, item: 2 }])).rejects.toThrow(
      `1 bad row, the first in the stream, row ${rows.length + 1}: rating is null`,
    );
    await expect(factors([...rows, { user: 'x', item: 2, rating: 3 }])).rejects.toThrow(
      /user is the text "x", and row 1 has the number/,
    );
    await expect(factors([...rows, { user: 1, item: 2, rating: 'good' }])).rejects.toThrow(
      /rating is the text "good", and row 1 has the number/,
    );
    await expect(factors([{ user: 1, item: 2, mark: 3 }])).rejects.toThrow(
      /there is no column "rating"; there are: user \(Int32\), item \(Int32\), mark \(Int32\)/,
    );
  });

  it('takes names of columns once, and recognises usual ones', async () => {
    const expected = await factors(rows);
    const odd = rows.map(({ user, item, rating }) => ({ who: user, what: item, mark: rating }));
    const data = session.fromRows(odd, { columns: { user: 'who', item: 'what', rating: 'mark' } });
    expect((await als().fit(data)).itemArrays).toEqual(expected);
    expect(
      await factors(rows.map(({ user, item, rating }) => ({ userId: user, movieId: item, score: rating }))),
    ).toEqual(expected);
  });

  it('splits by Dates', async () => {
    const dated = rows.map((row, i) => ({ ...row, timestamp: new Date(2020, 0, 1, 0, i) }));
    const [before, later] = await session.fromRows(dated).timeSplit({ before: new Date(2020, 0, 1, 0, 100) });
    expect([await before.count(), await later.count()]).toEqual([100, rows.length - 100]);
  });

  it('refuses an iterator where two passes are needed, with the advice', async () => {
    await expect(session.fromRows(rows.values()).leaveOut(1)).rejects.toThrow(
      /more than once.*Pass an array, or a function that makes the rows anew/s,
    );
    const { test } = await session.fromRows(() => rows.values()).leaveOut(1);
    expect(await test.count()).toBeGreaterThan(10);
  });
});
