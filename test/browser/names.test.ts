/** Names of items on a web server, of which the rows that are shown are read. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Int32, Int64, Table, tableToIPC, Utf8, type Vector, vectorFromArray } from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openModel, openNames, type PageModel } from '../../browser/index.ts';
import { ALS, CancelledError, col, ItemNames, type Model } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

const site = served();
const { folder } = site;
const triples = randomRatings(23, 120, 600, 6000);
const ratings = triples.slice(0, 6).map(({ item, rating }) => ({ item, rating }));
const ipc = (columns: Readonly<Record<string, Vector>>) => tableToIPC(new Table(columns), 'file');
let model: Model;

beforeAll(async () => {
  model = await new ALS({ rank: 12, maxIter: 2, seed: 5 }).fit(site.session.fromRows(triples));
  await model.save(join(folder, 'model'));
});
describe('names on a server', () => {
  const ROWS = 40_000;
  const title = (id: number) => `Film ${id}, ${'a long title '.repeat(1 + (id % 5))}`.trim();
  let page: PageModel | undefined;
  beforeAll(async () => {
    const known = Array.from({ length: ROWS }, (_, id) => id);
    const write = (name: string, id: Vector) =>
      writeFileSync(
        join(folder, name),
        ipc({
          id,
          title: vectorFromArray(
            known.map((one) => (one % 7 === 3 ? null : title(one))),
            new Utf8(),
          ),
          year: vectorFromArray(
            known.map((one) => 1900 + (one % 120)),
            new Int32(),
          ),
          poster: vectorFromArray(
            known.map((one) => `${one}`.padEnd(40, 'x')),
            new Utf8(),
          ),
        }),
      );
    write('films.arrow', vectorFromArray(known, new Int32()));
    write(
      'wide.arrow',
      vectorFromArray(
        known.map((id) => BigInt(id) * 2n ** 40n),
        new Int64(),
      ),
    );
    page = await openModel(`${site.server.url}/model`);
  });
  afterAll(() => page?.close());

  it('are read for the items that are shown', async () => {
    const names = await openNames(`${site.server.url}/films.arrow`, { name: 'title' });
    expect(names.size).toBe(ROWS);
    const all = new ItemNames(
      Array.from({ length: ROWS }, (_, id) => [id, id % 7 === 3 ? null : title(id)] as const),
    );
    expect(await page?.recommend({ ratings }, 10, { names })).toEqual(
      await model.recommend({ ratings }, 10, { names: all }),
    );
    const [{ item }] = ratings;
    expect(await page?.similar(item, 10, { names })).toEqual(await model.similar(item, 10, { names: all }));
    expect(await page?.explain(ratings, item, { names })).toEqual(
      await model.explain(ratings, item, { names: all }),
    );
    expect(site.server.sent.get('/films.arrow')).toBeLessThan(
      0.25 * readFileSync(join(folder, 'films.arrow')).length,
    );
  });

  it('have attributes, and leave out ids that are not in the file', async () => {
    const names = await openNames(`${site.server.url}/films.arrow`, { name: 'title', attributes: ['year'] });
    expect(await names.rows([39_999, -4, 3, 0, 1e9])).toEqual([
      { id: 39_999, name: title(39_999), attributes: { year: 1939 } },
      { id: 3, attributes: { year: 1903 } },
      { id: 0, name: title(0), attributes: { year: 1900 } },
    ]);
    const wide = await openNames(`${site.server.url}/wide.arrow`, { name: 'title' });
    const [row] = await wide.rows([5n * 2n ** 40n]);
    expect(row.name).toBe(title(5));
  });

  it.each(['pages', 'groups', 'csv'])('are read from other files: %s', async (kind) => {
    const films = site.session.read.arrow(join(folder, 'films.arrow')).orderBy('id');
    const file = `films-${kind}.${kind === 'csv' ? 'csv' : 'parquet'}`;
    if (kind === 'csv') await films.write.csv(join(folder, file));
    else
      await films.write.parquet(join(folder, file), {
        codec: 'snappy',
        ...(kind === 'groups' && { rowGroupSize: 5000 }),
      });
    const columns = { name: 'title', attributes: ['year', 'poster'] };
    const names = await openNames(`${site.server.url}/${file}`, columns);
    const known = await openNames(`${site.server.url}/films.arrow`, columns);
    expect(names.size).toBe(ROWS);
    for (const ids of [[3], [39_999, -4, 3, 0, 1e9], ['17', 17n, 2.5, 'x'], [4999, 5000, 5001]])
      expect(await names.rows(ids)).toEqual(await known.rows(ids));
    const { length } = readFileSync(join(folder, file));
    if (kind === 'groups') expect(site.server.sent.get(`/${file}`)).toBeLessThan(0.6 * length);
    const all = new ItemNames(
      Array.from({ length: ROWS }, (_, id) => [id, id % 7 === 3 ? null : title(id)] as const),
    );
    expect(await page?.recommend({ ratings }, 10, { names })).toEqual(
      await model.recommend({ ratings }, 10, { names: all }),
    );
    const given = new AbortController();
    given.abort();
    if (kind !== 'csv')
      await expect(names.rows([20_000], { signal: given.signal })).rejects.toThrow(CancelledError);
  });

  it('in Parquet are refused if pages cannot read them', async () => {
    const films = site.session.read.arrow(join(folder, 'films.arrow'));
    await films.write.parquet(join(folder, 'packed.parquet'));
    const open = (file: string, id = 'id') => openNames(`${site.server.url}/${file}`, { id, name: 'title' });
    await expect(open('packed.parquet')).rejects.toThrow('the column id is compressed by ZSTD');
    await expect(open('packed.parquet', 'other')).rejects.toThrow('the file has no column other');
    await films.orderBy(col('id').desc()).write.parquet(join(folder, 'falling.parquet'), { codec: 'snappy' });
    const falling = await open('falling.parquet');
    await expect(falling.rows([5])).rejects.toThrow('the ids do not ascend at row');
  });

  it('in text may have quotes and any order, and are refused if lines are damaged', async () => {
    const open = (file: string) => openNames(`${site.server.url}/${file}`, { name: 'title' });
    const texts: readonly (readonly [string, string])[] = [
      ['id,title\n1,"One\n', 'a quote opens in column 2 and does not close'],
      ['id,title\n1,One,1\n', 'the row has 3 fields, need 2'],
      ['id,title\n1,One\n,Two\n', 'row 2 has no id'],
      ['id,name\n1,One\n', 'the file has no column title'],
    ];
    for (const [text, message] of texts) {
      writeFileSync(join(folder, 'wrong.csv'), text);
      await expect(open('wrong.csv')).rejects.toThrow(message);
    }
    const lines = ['\ufeffid\ttitle', 'b\t"Two ""2"""', 'a\t', 'b\tlater', ' c\tThird', ''];
    writeFileSync(join(folder, 'names.tsv'), lines.join('\r\n'));
    const names = await open('names.tsv');
    expect([names.size, await names.rows(['a', 'b', 'c', ' c'])]).toEqual([
      3,
      [
        { id: 'a', attributes: {} },
        { id: 'b', name: 'Two "2"', attributes: {} },
        { id: ' c', name: 'Third', attributes: {} },
      ],
    ]);
  });

  it('are refused without the file or its columns', async () => {
    await expect(openNames(`${site.server.url}/none.arrow`)).rejects.toThrow('there is no file at this URL');
    await expect(openNames(`${site.server.url}/films.arrow`)).rejects.toThrow('the file has no column name');
    await expect(openNames(3 as unknown as string)).rejects.toThrow('openNames takes the URL, got 3');
    const names = await openNames(`${site.server.url}/films.arrow`, { name: 'title' });
    await expect(names.rows(5 as unknown as [])).rejects.toThrow('rows takes a list of ids');
    writeFileSync(join(folder, 'changed.arrow'), readFileSync(join(folder, 'films.arrow')));
    const changed = await openNames(`${site.server.url}/changed.arrow`, { name: 'title' });
    writeFileSync(join(folder, 'changed.arrow'), readFileSync(join(folder, 'wide.arrow')));
    await expect(changed.rows([1])).rejects.toThrow('the file was changed while it was read');
  });
});
