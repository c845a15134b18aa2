import type { RecordBatch } from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ALS, ItemNames, type Session } from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { batchOf, randomRatings, ratingBatches } from '../support/ratings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const session = await cpuSession();
const rows = randomRatings(51, 40, 30, 600);
const model = await new ALS({ rank: 2, maxIter: 2, seed: 2 }).fit(session.from(ratingBatches(rows)));

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** The names of a file, and the notes that reading gave. */
async function read(path: string, options: Parameters<Session['readItemNames']>[1] = {}) {
  const notes: string[] = [];
  const names = await session.readItemNames(path, {
    ...options,
    onEvent: (event) => (event.type === 'note' ? notes.push(event.text) : 0),
  });
  return { names, notes };
}

const ids = [...new Set(rows.map(({ item }) => item))].sort((left, right) => left - right);

describe('item names', () => {
  it('are found by numbers, bigints and texts; the first name of an id counts', () => {
    const names = new ItemNames([
      [5, 'Five'],
      ['5', 'Again'],
      [6n, ' Six '],
      ['a', 'Letter'],
      [7, null],
      [8, ' '],
    ]);
    expect([
      names.get(5),
      names.get(5n),
      names.get('5'),
      names.get(6),
      names.get('a'),
      names.get(7),
      names.get(9),
    ]).toEqual(['Five', 'Five', 'Five', 'Six', 'Letter', undefined, undefined]);
    expect([names.size, names.duplicates, names.unnamed]).toEqual([5, 1, 2]);
    expect(names.match([5, 7, 9])).toEqual({ items: 3, named: 1, unknown: 3 });
  });

  it('keep ids with leading zeros apart as texts, and give them to numbers', () => {
    const names = new ItemNames([
      ['007', 'Agent'],
      ['7', 'Seven'],
      ['0068646', 'The Godfather'],
    ]);
    expect([names.get('007'), names.get('7'), names.get(7), names.get(68_646), names.get('68646')]).toEqual([
      'Agent',
      'Seven',
      'Seven',
      'The Godfather',
      undefined,
    ]);
  });

  it.each<[string, string, Parameters<Session['readItemNames']>[1]?]>([
    ['csv', 'movieId,title,genres\n1,"American President, The (1995)",Drama\n2,1984,Drama\n'],
    ['tsv', 'id\tname\n1\tAmerican President, The (1995)\n2\t1984\n'],
    [
      'ndjson',
      '{"item_id":1,"tags":["a"],"Title":"American President, The ' +
        '(1995)"}\n{"item_id":2,"tags":[],"Title":"1984"}\n',
    ],
    ['dat', '1::American President, The (1995)::Drama\n2::1984::Drama\n3::Other::Drama\n'],
    ['csv', '1,"American President, The (1995)"\n2,1984\n3,Other\n'],
    ['item', '1|American President, The (1995)|01-Jan-1995\n2|1984|01-Jan-1984\n3|Other|\n'],
    ['csv', 'code,film\n1,"American President, The (1995)"\n2,1984\n', { idCol: 'code' }],
    ['csv', 'movie,x,label\n1,0,"American President, The (1995)"\n2,0,1984\n', { nameCol: 'label' }],
  ])('are read from %s, whose columns are found', async (ending, content, options) => {
    const { names } = await read(file(`names.${ending}`, content), options);
    expect([names.get(1), names.get(2n), names.get(4)]).toEqual([
      'American President, The (1995)',
      '1984',
      undefined,
    ]);
  });

  it.each(['parquet', 'arrow'] as const)('are read from %s with ids of other widths', async (format) => {
    const path = join(folder, `wide.${format}`);
    const batch = batchOf({
      item: { type: 'int64', values: [1n, 2n ** 40n] },
      title: { type: 'utf8', values: ['One', null] },
    });
    await session.from([batch]).write[format](path, { overwrite: true });
    const { names } = await read(path);
    expect([names.get(1), names.get(2 ** 40), names.unnamed]).toEqual(['One', undefined, 1]);
  });

  it('are taken by position without a header, which is noted', async () => {
    const { names, notes } = await read(
      file('movies.dat', '0000001::One (1913)::Crime\n0000002::Two (1915)::Comedy\n'),
    );
    expect([names.get(1), names.get('0000002')]).toEqual(['One (1913)', 'Two (1915)']);
    expect(notes.join()).toContain(
      'there is no header, so the first column is taken as the ids and the second as the names',
    );
  });

  it('are compared with the items of a model, and differences are counted in one note', async () => {
    const all = ids.slice(2).map((id) => `${id},Title ${id}`);
    const { names, notes } = await read(
      file(
        'some.csv',
        ['item,name', ...all, '1,Unknown', `${ids[5]},Again`, `${ids[0]},`, ',None', ''].join('\n'),
      ),
      { model },
    );
    expect(names.get(ids[5])).toBe(`Title ${ids[5]}`);
    expect(notes.length).toBe(1);
    for (const part of [
      '1 row without an id is left out',
      '1 row repeats an id, of which the first name counts',
      '1 id has no name',
      `2 of ${ids.length} items have no name and are shown as ids`,
    ])
      expect(notes[0]).toContain(part);
    expect(notes[0]).not.toContain('no item of the model');
  });

  it('of less than half of the items are a note that counts the other ids', async () => {
    const path = file('few.csv', `item,name\n${ids[0]},One\n999998,Other\n`);
    const { notes } = await read(path, { model });
    expect(notes).toEqual([
      `item names of ${path}: 1 id is not an item of the model; ${ids.length - 1} of ${ids.length} ` +
        `items have no name and are shown as ids`,
    ]);
  });

  it('say what is wrong with a file', async () => {
    await expect(read(file('bad.csv', 'label,year\nx,1999\n'))).rejects.toThrow(
      /there is no column of item ids; there are: label \(Utf8\), year \(Int32\).*bad\.csv.*Name it with idCol/s,
    );
    await expect(read(file('bad.csv', 'id,year,genre\n1,1999,Drama\n'))).rejects.toThrow(
      /there is no column of item names; there are: id .*genre.*Name it with nameCol/s,
    );
    await expect(read(file('bad.csv', 'id,title\n1,One\n'), { nameCol: 'titel' })).rejects.toThrow(
      /there is no column "titel".*Did you mean title\?/s,
    );
    await expect(read(file('bad.csv', 'id,title\n'))).rejects.toThrow('there are no ids of items');
    await expect(read(file('bad.csv', 'id,title\ntt01,One\n'), { model })).rejects.toThrow(
      `no id of the names is an item of the model: the ids of the names are texts such as "tt01", the ` +
        `model's are numbers such as ${ids[0]}`,
    );
    await expect(read(file('bad.csv', Buffer.from('id,title\n1,Misérables\n', 'latin1')))).rejects.toThrow(
      /not UTF-8.*iconv/s,
    );
    await expect(read(file('bad.json', '[{"id":1,"title":"One"}]'))).rejects.toThrow(
      /a JSON array is not read.*NDJSON.*jq/s,
    );
    await expect(read(join(folder, 'absent.csv'))).rejects.toThrow(/absent\.csv/);
    await expect(read(file('bad.csv', 'id,title\n1,One\n'), { title: 'x' } as object)).rejects.toThrow(
      'unknown option title of readItemNames',
    );
    const floats = batchOf({ id: { type: 'int32', values: [1] }, name: { type: 'float64', values: [1.5] } });
    await session.from([floats]).write.parquet(join(folder, 'floats.parquet'));
    await expect(read(join(folder, 'floats.parquet'))).rejects.toThrow(
      /names must be text, but the type is Float64/,
    );
  });
});

describe('names in lists', () => {
  const names = new ItemNames(ids.slice(1).map((id) => [id, `Title ${id}`] as const));
  const titleOf = (id: unknown) => (id === ids[0] ? null : `Title ${id}`);
  const rowsOf = async (lists: AsyncIterable<RecordBatch>) => {
    const all: Record<string, unknown>[] = [];
    for await (const batch of lists)
      all.push(...batch.toArray().map((row) => (row as { toJSON(): Record<string, unknown> }).toJSON()));
    return all;
  };

  it('are a column after the column of items', async () => {
    const lists = await rowsOf(model.recommendForAllUsers(30, { names }));
    expect(Object.keys(lists[0])).toEqual(['user', 'rank', 'item', 'name', 'prediction']);
    for (const { item, name } of lists) expect(name).toBe(titleOf(item));
    expect(new Set(lists.map(({ item }) => item)).has(ids[0])).toBe(true);
    expect(lists.map(({ name: _name, ...row }) => row)).toEqual(await rowsOf(model.recommendForAllUsers(30)));
    for (const { similarItem, name } of await rowsOf(model.similarItems('all', 3, { names })))
      expect(name).toBe(titleOf(similarItem));
    for (const { similarItem, name } of await rowsOf(model.similarItems([ids[3]], 3, { names })))
      expect(name).toBe(titleOf(similarItem));
    for (const { item, name } of await rowsOf(model.recommendForItems([ids[0], ids[1]], 3, { names })))
      expect(name).toBe(titleOf(item));
    const some = await rowsOf(
      model.recommendForUsers([rows[0].user, 99_999], 3, { names, unknownUsers: 'popular' }),
    );
    expect(Object.keys(some[0])).toEqual(['user', 'rank', 'item', 'name', 'prediction', 'fallback']);
  });

  it('are a field of requests and explanations, absent for items without one', async () => {
    for (const who of [rows[0].user, { ratings: [{ item: ids[1], rating: 5 }] }]) {
      const { items } = await model.recommend(who, 30, { names });
      for (const { item, name } of items) expect(name ?? null).toBe(titleOf(item));
    }
    const { name, contributions } = await model.explain(
      [
        { item: ids[1], rating: 5 },
        { item: ids[0], rating: 4 },
      ],
      ids[2],
      { names },
    );
    expect(name).toBe(titleOf(ids[2]));
    expect(contributions.map((one) => [one.item, one.name]).sort()).toEqual(
      [
        [ids[0], undefined],
        [ids[1], `Title ${ids[1]}`],
      ].sort(),
    );
    expect('name' in (await model.recommend(rows[0].user, 1)).items[0]).toBe(false);
  });

  it('are refused where they cannot be used', async () => {
    const wrong = new Map([[1, 'One']]) as never;
    expect(() => model.recommendForAllUsers(3, { names: wrong })).toThrow(
      /the option names of recommendForAllUsers takes ItemNames, got an object.*readItemNames/s,
    );
    expect(() => model.similarUsers([1], 3, { names })).toThrow('users have no names');
    await expect(model.explain([], ids[0], { names: wrong })).rejects.toThrow('the option names of explain');
    await expect(model.recommend(1, 3, { names: wrong })).rejects.toThrow('the option names of recommend');
  });
});

describe('genres of items', () => {
  it('are the first of several, by | or comma; the first that is given counts', () => {
    const names = new ItemNames([
      [1, 'A', 'Drama|War'],
      ['2', 'B', ' , Comedy ,War'],
      [3, null, 'Sci-Fi'],
      [4, 'D', ' '],
      [5, 'E', null],
      [6, 'F'],
      [7, 'G', '(no genres listed)'],
      [4, 'D', 'War'],
      [1, 'A', 'War'],
    ]);
    expect([1, 2n, '3', 4, 5, 6, 7, 8].map((id) => names.genre(id))).toEqual([
      'Drama',
      'Comedy',
      'Sci-Fi',
      'War',
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(new ItemNames([['0068646', 'The Godfather', 'Crime']]).genre(68_646)).toBe('Crime');
  });

  it.each<[string, string, Parameters<Session['readItemNames']>[1]?]>([
    ['csv', 'movieId,title,genres\n1,One,Drama|War\n2,Two,\n3,Three,7\n'],
    ['csv', 'category,id,title\n"Drama, War",1,One\n,2,Two\n7,3,Three\n'],
    ['tsv', 'id\tname\tmain_category\n1\tOne\tDrama\n2\tTwo\t\n3\tThree\t7\n'],
    [
      'ndjson',
      '{"id":1,"title":"One","Genre":"Drama"}\n{"id":2,"title":"Two","Genre":null}\n{"id":3,"title":"Three","Genre":"7"}\n',
    ],
    ['csv', 'id,title,genre,kind\n1,One,x,Drama\n2,Two,x,\n3,Three,x,7\n', { genreCol: 'kind' }],
  ])('are read from %s, whose column is found', async (ending, content, options) => {
    const { names } = await read(file(`genres.${ending}`, content), options);
    expect([1, 2, 3].map((id) => [names.get(id), names.genre(id)])).toEqual([
      ['One', 'Drama'],
      ['Two', undefined],
      ['Three', '7'],
    ]);
  });

  it('may be whole numbers and dictionaries, and are left out with a note where their column has neither text nor these', async () => {
    const write = async (name: string, genre: Parameters<typeof batchOf>[0][string]) => {
      const batch = batchOf({
        id: { type: 'int32', values: [1, 2] },
        title: { type: 'utf8', values: ['One', 'Two'] },
        genre,
      });
      await session.from([batch]).write.parquet(join(folder, name));
      return join(folder, name);
    };
    const numbers = await read(await write('number-genres.parquet', { type: 'int32', values: [7, null] }));
    expect([numbers.names.genre(1), numbers.names.genre(2), numbers.notes]).toEqual(['7', undefined, []]);
    const path = await write('float-genres.parquet', { type: 'float64', values: [1.5, 2] });
    const floats = await read(path);
    expect([floats.names.get(1), floats.names.genre(1)]).toEqual(['One', undefined]);
    expect(floats.notes.join()).toContain(
      'the column genre has values other than text and is not read as genres',
    );
    await expect(read(path, { genreCol: 'genre' })).rejects.toThrow(
      /genres must be text, but the type is Float64.*Name another column with genreCol/s,
    );
  });

  it('are no names: a file of ids and genres has genres as names alone', async () => {
    const { names } = await read(file('two.csv', 'id,genre\n1,Drama\n'));
    expect([names.get(1), names.genre(1)]).toEqual(['Drama', undefined]);
    const both = await read(file('two.csv', 'id,genre\n1,Drama\n'), { nameCol: 'genre', genreCol: 'genre' });
    expect([both.names.get(1), both.names.genre(1)]).toEqual(['Drama', 'Drama']);
  });

  it('say which column is missing', async () => {
    await expect(read(file('bad.csv', 'id,title,kind\n1,One,x\n'), { genreCol: 'kinds' })).rejects.toThrow(
      /there is no column "kinds".*Did you mean kind\?/s,
    );
  });
});
