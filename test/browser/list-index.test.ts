/** The list index of a model in a page: the lists of Node with the same probes, from the probed lists alone. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataError, openModel, type PageModel, UsageError } from '../../browser/index.ts';
import { ALS, CancelledError, type Dataset, type Model } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

const ITEMS = 9000;
const LISTS = 60;
const site = served();
const { folder } = site;
const triples = randomRatings(91, 300, ITEMS, 10 * ITEMS);
const users = [...new Set(triples.map(({ user }) => user))].slice(0, 5);
const ratedBy = (user: number) =>
  triples.filter((row) => row.user === user).map(({ item, rating }) => ({ item, rating }));
const INDEX = '/model/itemIndex/recommend.lists';
const bytesOf = (name: string) => readFileSync(join(folder, name));

let model: Model;
let page: PageModel;
beforeAll(async () => {
  model = await new ALS({ rank: 12, maxIter: 1, seed: 5 }).fit(site.session.fromRows(triples));
  await model.save(join(folder, 'model'));
  await model.buildIndex({ lists: LISTS, seed: 4 });
  await model.saveIndex(join(folder, 'model'));
  page = await openModel(`${site.server.url}/model`);
});
afterAll(() => page.close());

describe('the list index in a page', () => {
  it.each([1, 17, LISTS, true])('gives the recommendations of Node: %s lists', async (index) => {
    for (const user of users) {
      const ratings = ratedBy(user);
      const deny = triples.slice(0, 9).map(({ item }) => item);
      const given = { index, deny };
      expect(await page.recommend({ ratings }, 10, given)).toEqual(
        await model.recommend({ ratings }, 10, given),
      );
    }
  });

  it('gives the similar items of Node', async () => {
    for (const { item } of triples.slice(0, 5))
      for (const similarity of ['cosine', 'dot'] as const)
        for (const index of [2, 11])
          expect(await page.similar(item, 10, { similarity, index })).toEqual(
            await model.similar(item, 10, { similarity, index }),
          );
  });

  it('probes further lists until the list is full, and takes allowed items, as in Node', async () => {
    const visitor = { ratings: ratedBy(users[0]) };
    for (const given of [
      { index: 1, n: 700 },
      { index: 2, n: 1000 },
      { index: 1, n: 10, allow: triples.slice(40, 90).map(({ item }) => item) },
    ]) {
      const { n, ...options } = given;
      expect(await page.recommend(visitor, n, options)).toEqual(await model.recommend(visitor, n, options));
    }
  });

  it('reads the lists that are probed, once', async () => {
    const own = await openModel(`${site.server.url}/model`);
    expect(site.server.sent.has(INDEX)).toBe(false);
    const visitor = { ratings: ratedBy(users[1]) };
    await own.recommend(visitor, 10, { index: 1 });
    const { length } = bytesOf(INDEX);
    const first = site.server.sent.get(INDEX) as number;
    // The end of the file comes first: 64 KiB. Then the header, centers and radii, and one list.
    expect(first).toBeLessThan(65_536 + 2048 + (LISTS + 1) * 14 * 4 + 8 * ITEMS + 0.1 * length);
    await own.recommend(visitor, 10, { index: 1 });
    expect(site.server.sent.get(INDEX)).toBe(first);
    await own.recommend(visitor, 10, { index: 9 });
    expect(site.server.sent.get(INDEX)).toBeGreaterThan(first);
    await own.close();
  });

  it('is not read without being asked for in a small catalogue', async () => {
    const own = await openModel(`${site.server.url}/model`);
    await own.recommend({ ratings: ratedBy(users[0]) }, 10);
    await own.recommend({ ratings: ratedBy(users[0]) }, 10, { index: false });
    expect(site.server.sent.has(INDEX)).toBe(false);
    await own.close();
  });

  it('is refused if it is missing, damaged, cut short or of another model', async () => {
    const other = await new ALS({ rank: 12, maxIter: 1, seed: 6 }).fit(site.session.fromRows(triples));
    await other.save(join(folder, 'other'));
    const open = async (name: string, change: (bytes: Buffer) => Buffer | undefined) => {
      cpSync(join(folder, 'other'), join(folder, name), { recursive: true });
      const changed = change(bytesOf(INDEX));
      if (changed)
        cpSync(join(folder, 'model/itemIndex'), join(folder, name, 'itemIndex'), { recursive: true });
      if (changed) writeFileSync(join(folder, name, 'itemIndex/recommend.lists'), changed);
      const found = await openModel(`${site.server.url}/${name}`);
      const request = found.recommend({ ratings: ratedBy(users[0]) }, 5, { index: true });
      const error = await request.catch((reason: unknown) => reason);
      await found.close();
      return error as Error;
    };
    expect((await open('none', () => undefined)).message).toContain('the model has no index for recommend');
    const damaged: readonly [string, (bytes: Buffer) => Buffer, string][] = [
      ['foreign', (bytes) => bytes, 'its checksum of the item factors is another'],
      ['cut', (bytes) => bytes.subarray(0, -40), 'the index cannot be used: it has'],
      ['short', (bytes) => bytes.subarray(0, 9), 'the index cannot be used: it is cut'],
      ['text', (bytes) => Buffer.from('x'.repeat(bytes.length)), 'it is not an index of this release'],
      [
        'header',
        (bytes) => {
          bytes[40] ^= 1;
          return bytes;
        },
        'the checksum of its header is wrong',
      ],
      [
        'centers',
        (bytes) => {
          bytes[16 + bytes.readUInt32LE(8) + 5] ^= 1;
          return bytes;
        },
        'the checksum of its centers is wrong',
      ],
    ];
    for (const [name, change, message] of damaged) {
      const error = await open(name, change);
      expect(error, name).toBeInstanceOf(DataError);
      expect(error.message).toContain(message);
    }
  });

  it('is refused if it changes between two requests', async () => {
    const own = await openModel(`${site.server.url}/model`);
    const visitor = { ratings: ratedBy(users[2]) };
    await own.recommend(visitor, 5, { index: 1 });
    site.server.answer = ({ path, content, request, response }) => {
      if (path !== INDEX) return false;
      const [, from, to] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? [];
      response.writeHead(206, { 'Content-Range': `bytes ${from}-${to}/${content.length}`, ETag: '"other"' });
      response.end(content.subarray(Number(from), Number(to) + 1));
      return true;
    };
    await expect(own.recommend(visitor, 5, { index: 30 })).rejects.toThrow('was changed while it was read');
    await own.close();
  });
});

type Write = (items: Dataset, path: string) => Promise<unknown>;
const toArrow: Write = (items, path) => items.write.arrow(path);

describe('a model that is opened with its index', () => {
  const FACTORS = 'itemFactors/part-00000.parquet';
  const arrowOf = (name: string) => `/${name}/${FACTORS.replace('parquet', 'arrow')}`;

  /** A copy of the model; `write` writes its item factors to a path, in place of the file of Model.save. */
  async function copied(name: string, format = 'parquet', write?: Write) {
    cpSync(join(folder, 'model'), join(folder, name), { recursive: true });
    if (write) {
      // Files are not written into a model.
      const written = join(folder, `${name}.${format}`);
      await write(site.session.read.parquet(join(folder, 'model', FACTORS)), written);
      rmSync(join(folder, name, FACTORS));
      cpSync(written, join(folder, name, FACTORS.replace('parquet', format)));
    }
    return `${site.server.url}/${name}`;
  }

  it.each<[string, string, Write | undefined]>([
    ['of Model.save', 'parquet', undefined],
    ['in Arrow', 'arrow', toArrow],
    [
      'in Parquet of another writer',
      'parquet',
      (items, path) => items.write.parquet(path, { codec: 'snappy' }),
    ],
  ])('gives the results of Node: files %s', async (kind, format, write) => {
    const own = await openModel(await copied(kind.replaceAll(' ', '-'), format, write), { index: true });
    const visitor = { ratings: ratedBy(users[3]) };
    for (const given of [
      {},
      { index: 2 },
      { index: 4, allow: triples.slice(40, 90).map(({ item }) => item) },
    ])
      expect(await own.recommend(visitor, 10, given)).toEqual(
        await model.recommend(visitor, 10, { index: true, ...given }),
      );
    const [{ item }] = triples;
    for (const similarity of ['cosine', 'dot'] as const)
      expect(await own.similar(item, 10, { similarity })).toEqual(
        await model.similar(item, 10, { similarity, index: true }),
      );
    expect(await own.explain(visitor.ratings, item)).toEqual(await model.explain(visitor.ratings, item));
    // An exact search loads the factors of all items.
    expect(await own.recommend(visitor, 10, { index: false })).toEqual(await model.recommend(visitor, 10));
    expect(await own.recommend(visitor, 10)).toEqual(await model.recommend(visitor, 10));
    await own.close();
  });

  it('loads its factors for new users of implicit data only if the index has no Gram matrix', async () => {
    // Some of its items have no ratings, and take no part in the matrix.
    const kinds = Array.from({ length: ITEMS + 40 }, (_, at) => ({ item: 10_000 + at, kind: `k${at % 7}` }));
    const implicit = await new ALS({
      rank: 12,
      maxIter: 1,
      seed: 6,
      implicitPrefs: true,
      itemAttributes: {
        data: site.session.fromRows([
          ...new Map(
            [...triples.map(({ item }) => ({ item, kind: `k${item % 5}` })), ...kinds].map((row) => [
              row.item,
              row,
            ]),
          ).values(),
        ]),
      },
    }).fit(site.session.fromRows(triples));
    const [file, path] = [join(folder, 'implicit'), `/implicit/${FACTORS}`];
    await implicit.save(file);
    await implicit.buildIndex({ lists: LISTS, seed: 4, searches: ['recommend'] });
    await implicit.saveIndex(file);
    const visitor = { ratings: ratedBy(users[3]) };
    const expected = await implicit.recommend(visitor, 10, { index: 3 });
    const read = async () => {
      site.server.reset();
      const own = await openModel(`${site.server.url}/implicit`, { index: true });
      expect(await own.recommend(visitor, 10, { index: 3 })).toEqual(expected);
      await own.close();
      return site.server.sent.get(path) as number;
    };
    const rows = await read();
    const index = join(file, 'itemIndex/recommend.lists');
    writeFileSync(index, withoutGram(readFileSync(index)));
    expect(await read()).toBeGreaterThan(rows + 3 * ITEMS * 12);
    // A request that is cancelled while all factors are read: its second large read, after the visitor's items.
    const own = await openModel(`${site.server.url}/implicit`, { index: true });
    const aborting = new AbortController();
    let large = 0;
    site.server.answer = ({ path: asked, request }) => {
      const [from, to] = (request.headers.range ?? '').replace('bytes=', '').split('-').map(Number);
      if (asked !== path || to - from < 12 * ITEMS || large++ === 0) return false;
      aborting.abort();
      return true;
    };
    const cancelled = own.recommend(visitor, 10, { index: 3, signal: aborting.signal });
    await expect(cancelled).rejects.toThrow(CancelledError);
    await own.close();
  });

  it('is refused without an index, or with an index of other factors', async () => {
    await expect(openModel(`${site.server.url}/model`, { index: 3 as never })).rejects.toThrow(UsageError);
    const bare = await copied('bare');
    rmSync(join(folder, 'bare/itemIndex'), { recursive: true });
    await expect(openModel(bare, { index: true })).rejects.toThrow('the model has no index for recommend');
    const foreign = await copied('other-factors');
    const other = await new ALS({ rank: 12, maxIter: 1, seed: 8 }).fit(site.session.fromRows(triples));
    await other.save(join(folder, 'other-factors'), { overwrite: true });
    cpSync(join(folder, 'model/itemIndex'), join(folder, 'other-factors/itemIndex'), { recursive: true });
    const own = await openModel(foreign, { index: true });
    const error = await own.recommend({ ratings: ratedBy(users[0]) }, 5).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DataError);
    expect((error as Error).message).toContain('its items have other factors');
    await own.close();
  });

  it('is refused if the factors are replaced after it was opened, and ends when it is cancelled', async () => {
    const own = await openModel(await copied('replaced', 'arrow', toArrow), { index: true });
    const visitor = { ratings: ratedBy(users[4]) };
    const aborting = new AbortController();
    site.server.answer = () => {
      aborting.abort();
      return true;
    };
    await expect(own.recommend(visitor, 5, { signal: aborting.signal })).rejects.toThrow(CancelledError);
    site.server.answer = () => false;
    const path = join(folder, arrowOf('replaced'));
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.alloc(8)]));
    await expect(own.recommend(visitor, 5)).rejects.toThrow('the file was changed while it was read');
    await own.close();
  });

  it('ends when it is cancelled while the index is read', async () => {
    const aborting = new AbortController();
    site.server.answer = ({ path, before }) => {
      if (path !== INDEX || before === 0) return false;
      aborting.abort();
      return true;
    };
    const opening = openModel(`${site.server.url}/model`, { index: true, signal: aborting.signal });
    const error = await opening.catch((reason: unknown) => reason);
    expect(error).not.toBeInstanceOf(DataError);
    expect(aborting.signal.aborted).toBe(true);
  });
});

/** The file of an index as releases wrote it that stored no Gram matrix. */
function withoutGram(bytes: Buffer): Buffer {
  const end = 16 + bytes.readUInt32LE(8);
  const { gram, sums, ...header } = JSON.parse(bytes.toString('latin1', 16, end)) as Record<string, object>;
  expect(gram).toEqual({ unobserved: expect.any(Number) as number });
  const json = JSON.stringify({ ...header, sums: { ...sums, gram: undefined } }).padEnd(end - 16);
  const head = Buffer.concat([bytes.subarray(0, 16), Buffer.from(json, 'latin1')]);
  head.writeUInt32LE(crc32(head.subarray(16)), 12);
  return Buffer.concat([head, bytes.subarray(end, -4 * 16 * 12)]);
}

describe('a large catalogue', () => {
  const site = served();
  const { folder } = site;
  const ITEMS = 40_000;
  const triples = randomRatings(17, 200, ITEMS, 2 * ITEMS);
  const visitors = [...new Set(triples.map(({ user }) => user))].slice(0, 3).map((one) => ({
    ratings: triples
      .filter(({ user }) => user === one)
      .slice(0, 12)
      .map(({ item, rating }) => ({ item, rating })),
  }));
  const FACTORS = '/model/itemFactors/part-00000.parquet';
  beforeAll(async () => {
    const als = new ALS({ rank: 32, maxIter: 1, seed: 5, implicitPrefs: true });
    model = await als.fit(site.session.fromRows(triples));
    await model.save(join(folder, 'model'));
    await model.buildIndex({ lists: 150, seed: 4, searches: ['recommend'] });
    await model.saveIndex(join(folder, 'model'));
  });
  it('a recommendation from a large catalogue reads a small part of its factors, in few requests', async () => {
    const { length } = readFileSync(join(folder, FACTORS));
    expect(length).toBeGreaterThan(4 * 32 * 0.8 * ITEMS);
    const page = await openModel(`${site.server.url}/model`, { index: true });
    // The ids, and the end of the file: 64 KiB.
    expect(site.server.sent.get(FACTORS)).toBeLessThan(4 * ITEMS + 65_536 + 1000);
    for (const visitor of visitors) {
      site.server.reset();
      const found = await page.recommend(visitor, 10);
      expect(site.server.sent.get(FACTORS)).toBeLessThan(0.05 * length);
      expect(site.server.requests.get(FACTORS)).toBeLessThan(50);
      expect(found).toEqual(await model.recommend(visitor, 10, { index: true }));
      site.server.reset();
      expect(await page.recommend(visitor, 10)).toEqual(found);
      expect([...site.server.sent.keys()]).toEqual([]);
      const [{ item }] = found.items;
      expect(await page.explain(visitor.ratings, item)).toEqual(await model.explain(visitor.ratings, item));
    }
    await page.close();
  });
});
