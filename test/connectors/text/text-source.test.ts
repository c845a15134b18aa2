import { writeFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { TextSource } from '../../../connectors/text/text-source.ts';
import { duckdb } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { readTable, readText } from './text-testing.ts';

const folder = temporaryFolder();

const read = (content: string | Uint8Array, options = {}, name?: string) =>
  readText(folder, content, options, name);

describe('what is found out', () => {
  const ratings = {
    columns: ['userId:Int32', 'movieId:Int32', 'rating:Float64'],
    rows: [
      [1, 10, 3.5],
      [2, 20, 4],
    ],
  };

  test.each([
    ['commas', 'userId,movieId,rating\n1,10,3.5\n2,20,4\n'],
    ['tabs', 'userId\tmovieId\trating\n1\t10\t3.5\n2\t20\t4\n'],
    ['semicolons', 'userId;movieId;rating\n1;10;3.5\n2;20;4\n'],
    ['double colons', 'userId::movieId::rating\n1::10::3.5\n2::20::4\n'],
    ['CRLF', 'userId,movieId,rating\r\n1,10,3.5\r\n2,20,4\r\n'],
    ['no last line end', 'userId,movieId,rating\n1,10,3.5\n2,20,4'],
    ['CRLF and no last line end', 'userId,movieId,rating\r\n1,10,3.5\r\n2,20,4'],
    ['empty lines', '\nuserId,movieId,rating\n1,10,3.5\n\n2,20,4\n\n\n'],
    ['a byte order mark', '\ufeffuserId,movieId,rating\n1,10,3.5\n2,20,4\n'],
    ['quotes everywhere', '"userId","movieId","rating"\n"1","10","3.5"\n"2","20","4"\n'],
    ['spaces around', 'userId, movieId, rating\n1, 10, 3.5\n2, 20 , 4\n'],
    ['signs', 'userId,movieId,rating\n+1,10,+3.5\n2,20,4e0\n'],
  ])('%s', async (_name, text) => {
    expect(await read(text)).toEqual(ratings);
  });

  test('gzip by its bytes, members in a row too', async () => {
    const [first, second] = [gzipSync('userId,movieId,rating\n1,10,3.5\n'), gzipSync('2,20,4\n')];
    expect(await read(Buffer.concat([first, second]), {}, 'ratings.csv.gz')).toEqual(ratings);
    expect(await read(Buffer.concat([first, second]), {}, 'gzip-inside.csv')).toEqual(ratings);
  });

  test('no header: columns by position', async () => {
    expect(await read('1,2,3.5\n')).toEqual({
      columns: ['user:Int32', 'item:Int32', 'rating:Float64'],
      rows: [[1, 2, 3.5]],
    });
    expect((await read('1::2::3::978300760\n', {}, 'ratings.dat')).columns).toEqual([
      'user:Int32',
      'item:Int32',
      'rating:Int32',
      'timestamp:Int32',
    ]);
    expect((await read('1 2 3\n4 5 6\n')).rows).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect((await read('1,2\n')).columns).toEqual(['column1:Int32', 'column2:Int32']);
    expect((await read('a,b,1\nc,d,2\n')).columns).toEqual(['user:Utf8', 'item:Utf8', 'rating:Int32']);
  });

  test('a header of texts over texts needs a usual name, or is told', async () => {
    expect((await read('user,item\na,b\n')).rows).toEqual([['a', 'b']]);
    expect((await read('who,what\na,b\n')).rows).toHaveLength(2);
    expect((await read('who,what\na,b\n', { header: true })).columns).toEqual(['who:Utf8', 'what:Utf8']);
    expect((await read('1,2\n3,4\n', { header: true })).columns).toEqual(['1:Int32', '2:Int32']);
    expect(await read('user,item,rating\n')).toEqual({
      columns: ['user:Utf8', 'item:Utf8', 'rating:Utf8'],
      rows: [],
    });
    expect((await read('1,2\n', { columns: ['a', 'b'] })).columns).toEqual(['a:Int32', 'b:Int32']);
  });

  test('types from narrow to wide, nulls anywhere', async () => {
    const text =
      'a,b,c,d,e,f\n1,2147483648,1,x,,007\n,,0.5,2,,8\n-2147483648,-9223372036854775808,1e3,"",,9\n0,9007199254740993,nan,"a ""b""",,1\n';
    expect(await read(text, { header: true })).toEqual({
      columns: ['a:Int32', 'b:Int64', 'c:Float64', 'd:Utf8', 'e:Utf8', 'f:Utf8'],
      rows: [
        [1, 2147483648n, 1, 'x', null, '007'],
        [null, null, 0.5, '2', null, '8'],
        [-2147483648, -9223372036854775808n, 1000, '', null, '9'],
        [0, 9007199254740993n, Number.NaN, 'a "b"', null, '1'],
      ],
    });
  });

  test('whole numbers beyond 64 bits stay text, unless decimals are beside them', async () => {
    expect((await read('a,b\n18446744073709551616,18446744073709551616\n1,0.5\n')).rows).toEqual([
      ['18446744073709551616', 18446744073709552000],
      ['1', 0.5],
    ]);
  });

  test('types that are given', async () => {
    const given = await read('user,item,rating\n007,1,4\n8,2,0.1\n', {
      types: { user: 'int64', item: 'utf8', rating: 'float32' },
    });
    expect(given).toEqual({
      columns: ['user:Int64', 'item:Utf8', 'rating:Float32'],
      rows: [
        [7n, '1', 4],
        [8n, '2', Math.fround(0.1)],
      ],
    });
  });

  test('quotes hold delimiters, quotes and line ends', async () => {
    const { rows } = await read('id,name\n1,"a,b"\n2,"c\r\nd"\n3,"say ""hi"""\n4,mid"quote\n');
    expect(rows).toEqual([
      [1, 'a,b'],
      [2, 'c\r\nd'],
      [3, 'say "hi"'],
      [4, 'mid"quote'],
    ]);
    expect((await read('1::"Great" Cats::2\n', {}, 'movies.dat')).rows).toEqual([[1, '"Great" Cats', 2]]);
    expect((await read('1,"a\n2,b"\n', { quotes: false })).rows).toEqual([
      [1, '"a'],
      [2, 'b"'],
    ]);
  });

  test('one column: blank lines are nulls', async () => {
    expect((await read('id\n1\n\n3\n')).rows).toEqual([[1], [null], [3]]);
  });

  test('columns are pruned, and batches keep to their size', async () => {
    const file = join(folder, 'many.csv');
    writeFileSync(
      file,
      `user,item,rating\n${Array.from({ length: 1000 }, (_, i) => `${i},${i % 7},${i / 2}\n`).join('')}`,
    );
    const source = new TextSource(file, { batchSize: 300 });
    const batches = [];
    for await (const batch of await source.execute({ signal: new AbortController().signal }, ['item']))
      batches.push(batch);
    expect(batches.map(({ numRows }) => numRows)).toEqual([300, 300, 300, 100]);
    expect(batches[0].schema.fields.map(({ name }) => name)).toEqual(['item']);
    await expect(readTable(source, ['nothing'])).rejects.toThrow(/no such column/);
  });

  test('rows across the edges of the window in memory', async () => {
    const row = (i: number) => `${i},"${'ä"",\n'.repeat(i % 40)}",${i / 4}`;
    const count = 30_000;
    const { rows } = await read(`a,b,c\n${Array.from({ length: count }, (_, i) => row(i)).join('\r\n')}`);
    expect(rows).toHaveLength(count);
    expect(rows.findIndex(([a, b, c], i) => a !== i || b !== 'ä",\n'.repeat(i % 40) || c !== i / 4)).toBe(-1);
  });

  test.each([0, 1, 2, 3])(
    'characters of three and four bytes across the edges of the window, moved by %d',
    async (moved) => {
      const title = '漢😀字'.repeat(100);
      const { rows } = await read(`${'a'.repeat(moved + 1)},b\n${`1,${title}\n`.repeat(5000)}`);
      expect(rows).toHaveLength(5000);
      expect(rows.every(([, text]) => text === title)).toBe(true);
    },
  );
});

describe('folders', () => {
  const inFolder = (name: string, files: Record<string, string>) => {
    for (const [file, content] of Object.entries(files)) {
      const path = join(folder, name, file);
      mkdirSync(join(path, '..'), { recursive: true });
      writeFileSync(path, content);
    }
    return join(folder, name);
  };

  test('part files agree on the widest type; name=value folders add columns', async () => {
    const path = inFolder('parts', {
      'year=1/part-0.csv': 'user,item\n1,2\n',
      'year=2/part-1.csv': 'user,item\n5000000000,x\n',
    });
    expect(await readTable(new TextSource(path))).toEqual({
      columns: ['user:Int64', 'item:Utf8', 'year:Int32'],
      rows: [
        [1n, '2', 1],
        [5000000000n, 'x', 2],
      ],
    });
    expect((await readTable(new TextSource(path), ['year'])).rows).toEqual([[1], [2]]);
  });

  test('files with other columns are named', async () => {
    const path = inFolder('mixed', { 'a.csv': 'user,item\n1,2\n', 'b.csv': 'user,thing\n1,2\n' });
    await expect(readTable(new TextSource(path))).rejects.toThrow(
      /has no column "item", which .*a\.csv has \(.*b\.csv/,
    );
  });
});

test('DuckDB writes, we read the same', async () => {
  const file = join(folder, 'duck.csv');
  const duck = await duckdb();
  const query = `SELECT (i * 7919) % 1000 AS "user", i * 10000000000 AS item, ((i % 10) / 2.0)::DOUBLE AS rating, CASE WHEN i % 5 = 0 THEN NULL ELSE 'a "' || i || chr(10) || ', é' END AS note FROM range(5000) t(i)`;
  await duck.run(`COPY (${query}) TO '${file}' (HEADER, DELIMITER ',')`);
  expect(readFileSync(file, 'utf8').startsWith('user,item,rating,note\n')).toBe(true);
  const rows = await (await duck.runAndReadAll(query)).getRowsJS();
  const { columns, rows: ours } = await readTable(new TextSource(file));
  expect(columns).toEqual(['user:Int32', 'item:Int64', 'rating:Float64', 'note:Utf8']);
  expect(ours).toEqual(rows.map(([user, item, rating, note]) => [Number(user), item, rating, note]));
});
