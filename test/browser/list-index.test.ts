/** The list index of a model in a page: the lists of Node with the same probes, from the probed lists alone. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { DataError, openModel, type PageModel } from '../../browser/index.ts';
import { ALS, type Model, Session } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

const ITEMS = 9000;
const LISTS = 60;
const folder = mkdtempSync(join(tmpdir(), 'factorflow-page-lists-'));
const triples = randomRatings(91, 300, ITEMS, 10 * ITEMS);
const users = [...new Set(triples.map(({ user }) => user))].slice(0, 12);
const ratedBy = (user: number) =>
  triples.filter((row) => row.user === user).map(({ item, rating }) => ({ item, rating }));
const INDEX = '/model/itemIndex/recommend.lists';
const bytesOf = (name: string) => readFileSync(join(folder, name));

let [session, server, model, page]: [Session?, PageServer?, Model?, PageModel?] = [];
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2 });
  model = await new ALS({ rank: 12, maxIter: 3, seed: 5 }).fit(session.fromRows(triples));
  await model.save(join(folder, 'model'));
  await model.buildIndex({ lists: LISTS, seed: 4 });
  await model.saveIndex(join(folder, 'model'));
  server = await PageServer.open(folder);
  page = await openModel(`${server.url}/model`);
});
beforeEach(() => server?.reset());
afterAll(async () => {
  await page?.close();
  await server?.close();
  await session?.close();
  rmSync(folder, { recursive: true });
});

describe('the list index in a page', () => {
  it.each([1, 3, 17, LISTS, true])('gives the recommendations of Node: %s lists', async (index) => {
    for (const user of users) {
      const ratings = ratedBy(user);
      const deny = triples.slice(0, 9).map(({ item }) => item);
      const given = { index, deny };
      expect(await page?.recommend({ ratings }, 10, given)).toEqual(
        await model?.recommend({ ratings }, 10, given),
      );
    }
  });

  it('gives the similar items of Node', async () => {
    for (const { item } of triples.slice(0, 12))
      for (const similarity of ['cosine', 'dot'] as const)
        for (const index of [2, 11])
          expect(await page?.similar(item, 10, { similarity, index })).toEqual(
            await model?.similar(item, 10, { similarity, index }),
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
      expect(await page?.recommend(visitor, n, options)).toEqual(await model?.recommend(visitor, n, options));
    }
  });

  it('reads the lists that are probed, once', async () => {
    const own = await openModel(`${server?.url}/model`);
    expect(server?.sent.has(INDEX)).toBe(false);
    const visitor = { ratings: ratedBy(users[1]) };
    await own.recommend(visitor, 10, { index: 1 });
    const { length } = bytesOf(INDEX);
    const first = server?.sent.get(INDEX) as number;
    // The end of the file comes first: 64 KiB. Then the header, centers and radii, and one list.
    expect(first).toBeLessThan(65_536 + 2048 + (LISTS + 1) * 14 * 4 + 8 * ITEMS + 0.1 * length);
    await own.recommend(visitor, 10, { index: 1 });
    expect(server?.sent.get(INDEX)).toBe(first);
    await own.recommend(visitor, 10, { index: 9 });
    expect(server?.sent.get(INDEX)).toBeGreaterThan(first);
    await own.close();
  });

  it('is not read without being asked for in a small catalogue', async () => {
    const own = await openModel(`${server?.url}/model`);
    await own.recommend({ ratings: ratedBy(users[0]) }, 10);
    await own.recommend({ ratings: ratedBy(users[0]) }, 10, { index: false });
    expect(server?.sent.has(INDEX)).toBe(false);
    await own.close();
  });

  it('is refused if it is missing, damaged, cut short or of another model', async () => {
    const other = await new ALS({ rank: 12, maxIter: 1, seed: 6 }).fit(session!.fromRows(triples));
    await other.save(join(folder, 'other'));
    const open = async (name: string, change: (bytes: Buffer) => Buffer | undefined) => {
      cpSync(join(folder, 'other'), join(folder, name), { recursive: true });
      const changed = change(bytesOf(INDEX));
      if (changed)
        cpSync(join(folder, 'model/itemIndex'), join(folder, name, 'itemIndex'), { recursive: true });
      if (changed) writeFileSync(join(folder, name, 'itemIndex/recommend.lists'), changed);
      const found = await openModel(`${server?.url}/${name}`);
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
    const own = await openModel(`${server?.url}/model`);
    const visitor = { ratings: ratedBy(users[2]) };
    await own.recommend(visitor, 5, { index: 1 });
    server!.answer = ({ path, content, request, response }) => {
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
