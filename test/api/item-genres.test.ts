import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ItemNames, type Session } from '../../index.ts';
import { batchOf } from '../support/ratings.ts';
import { file, folder, read, session } from './named-items.ts';

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

  it('in lists of NDJSON leave the names as they are', async () => {
    const { names, notes } = await read(
      file(
        'lists.ndjson',
        '{"id":1,"title":"One","genres":["Drama","War"]}\n{"id":2,"title":"Two","genres":[]}\n',
      ),
    );
    expect([names.get(1), names.get(2), names.genre(1)]).toEqual(['One', 'Two', undefined]);
    expect(notes.join()).toContain('the column genres has values other than text and is not read as genres');
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
