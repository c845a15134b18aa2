/** A model whose item factors stay on the server: searches read the rows that they need by HTTP ranges. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { openModel } from '../../browser/index.ts';
import { ALS, type Model, Session } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

const ITEMS = 40_000;
const folder = mkdtempSync(join(tmpdir(), 'factorflow-large-'));
const triples = randomRatings(17, 200, ITEMS, 2 * ITEMS);
const visitors = [...new Set(triples.map(({ user }) => user))].slice(0, 3).map((one) => ({
  ratings: triples
    .filter(({ user }) => user === one)
    .slice(0, 12)
    .map(({ item, rating }) => ({ item, rating })),
}));
const FACTORS = '/model/itemFactors/part-00000.parquet';

let [session, server, model]: [Session?, PageServer?, Model?] = [];
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 2 });
  const als = new ALS({ rank: 32, maxIter: 2, seed: 5, implicitPrefs: true });
  model = await als.fit(session.fromRows(triples));
  await model.save(join(folder, 'model'));
  await model.buildIndex({ lists: 150, seed: 4, searches: ['recommend'] });
  await model.saveIndex(join(folder, 'model'));
  server = await PageServer.open(folder);
});
beforeEach(() => server?.reset());
afterAll(async () => {
  await server?.close();
  await session?.close();
  rmSync(folder, { recursive: true });
});

it('a recommendation from a large catalogue reads a small part of its factors, in few requests', async () => {
  const { length } = readFileSync(join(folder, FACTORS));
  expect(length).toBeGreaterThan(4 * 32 * 0.8 * ITEMS);
  const page = await openModel(`${server?.url}/model`, { index: true });
  // The ids, and the end of the file: 64 KiB.
  expect(server?.sent.get(FACTORS)).toBeLessThan(4 * ITEMS + 65_536 + 1000);
  for (const visitor of visitors) {
    server?.reset();
    const found = await page.recommend(visitor, 10);
    expect(server?.sent.get(FACTORS)).toBeLessThan(0.05 * length);
    expect(server?.requests.get(FACTORS)).toBeLessThan(50);
    expect(found).toEqual(await model?.recommend(visitor, 10, { index: true }));
    server?.reset();
    expect(await page.recommend(visitor, 10)).toEqual(found);
    expect([...server!.sent.keys()]).toEqual([]);
    const [{ item }] = found.items;
    expect(await page.explain(visitor.ratings, item)).toEqual(await model?.explain(visitor.ratings, item));
  }
  await page.close();
});
