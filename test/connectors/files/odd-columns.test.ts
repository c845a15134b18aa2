import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { col, count, type Dataset } from '../../../index.ts';
import { cpuSession } from '../../support/cpu-session.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { duckRows } from '../parquet/parquet-testing.ts';

const folder = temporaryFolder();
const session = await cpuSession({ workers: 1 });
/** Written by golden/odd-columns/write.py with polars 2.1.0 and pyarrow 26.0.1. */
const golden = join(import.meta.dirname, '../../golden/odd-columns');
const files = readdirSync(golden).filter((name) => !name.endsWith('.py'));
const read = (name: string): Dataset => {
  const path = join(golden, name);
  return name.endsWith('.parquet') ? session.read.parquet(path) : session.read.arrow(path);
};

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const long = 'a text longer than twelve bytes';
const plain = [
  {
    user: 1,
    texts: 'a',
    bytes: bytes('a'),
    list_of_texts: ['a', long],
    large_list: [1, 2],
    nulls: null,
    list_of_nulls: [null],
    struct_of_nulls: { a: null, b: 1 },
    map: { k: { x: [1, null] } },
    json: '{"a":1}',
  },
  {
    user: 2,
    texts: null,
    bytes: null,
    list_of_texts: null,
    large_list: null,
    nulls: null,
    list_of_nulls: null,
    struct_of_nulls: null,
    map: null,
    json: null,
  },
  {
    user: 3,
    texts: long,
    bytes: bytes('more than twelve bytes'),
    list_of_texts: [],
    large_list: [],
    nulls: null,
    list_of_nulls: [],
    struct_of_nulls: { a: null, b: 2 },
    map: {},
    json: '[]',
  },
];

describe('columns of rare types', () => {
  it.each(files)('do not hinder the others of %s', async (name) => {
    const rows = read(name);
    expect(await rows.select('user').toArray()).toEqual([{ user: 1 }, { user: 2 }, { user: 3 }]);
    expect(await rows.count()).toBe(3);
    expect(await rows.filter(col('user').gt(1)).count()).toBe(2);
    expect(await rows.groupBy('user').agg(count().as('n')).count()).toBe(3);
    await rows.select('user').write.parquet(join(folder, 'users.parquet'), { overwrite: true });
  });

  it.each(['plain.parquet', 'plain.arrow'])('of %s are read, moved and written', async (name) => {
    const rows = read(name);
    expect(await rows.toArray()).toEqual(plain);
    expect(await rows.orderBy(col('user').desc()).toArray()).toEqual(plain.toReversed());
    for (const column of Object.keys(plain[0]))
      expect(await rows.filter(col(column).isNull()).count(), column).toBe(
        plain.filter((row) => row[column as 'user'] === null).length,
      );
    const [parquet, arrow] = [join(folder, 'copy.parquet'), join(folder, 'copy.arrow')];
    await rows.write.parquet(parquet, { overwrite: true });
    await rows.write.arrow(arrow, { overwrite: true });
    expect(await session.read.parquet(parquet).toArray()).toEqual(plain);
    expect(await session.read.arrow(arrow).toArray()).toEqual(plain);
    const asText = `texts, bytes::VARCHAR, list_of_texts::VARCHAR, map::VARCHAR, list_of_nulls::VARCHAR`;
    const query = (file: string) => `SELECT ${asText} FROM '${file}' ORDER BY "user"`;
    expect(await duckRows(query(parquet))).toEqual(await duckRows(query(join(golden, 'plain.parquet'))));
  });

  it('of Parquet have the types of Parquet where the types of the writer are not read', async () => {
    const lists = [[1, 2], null, []];
    expect(await read('list-views.parquet').toArray()).toEqual(
      lists.map((list, i) => ({ user: i + 1, list_view: list, large_list_view: list })),
    );
    expect(await read('polars-int128.parquet').select('user', 'text').toArray()).toEqual([
      { user: 1, text: 'a' },
      { user: 2, text: null },
      { user: 3, text: long },
    ]);
  });

  it('of Arrow that are left out are named where all are asked for', async () => {
    for (const [name, column] of Object.entries({ 'list-views': 'list_view', 'polars-int128': 'wide' }))
      await expect(read(`${name}.arrow`).toArray()).rejects.toThrow(
        new RegExp(`left out.*integers of 128 bits, are not read: ${column}.*select does: user`),
      );
    expect(await read('polars-int128.arrow').select('text').toArray()).toEqual([
      { text: 'a' },
      { text: null },
      { text: long },
    ]);
  });
});
