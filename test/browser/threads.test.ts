/** Training with several threads, on a page that is cross-origin isolated in headless Chromium. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, Session } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

interface Trained {
  readonly device: string;
  readonly losses: readonly number[];
  readonly items: readonly object[];
}

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: threads in a browser. ${refusal}`);
const folder = mkdtempSync(join(tmpdir(), 'factorflow-threads-'));
const triples = randomRatings(32, 200, 150, 5000);
const visitor = triples.slice(0, 5).map(({ item, rating }) => ({ item, rating }));
const options = { rank: 8, maxIter: 3, seed: 4 };

const PAGE = `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:," />
<script type="module">
import { trainAls } from './index.js';
window.train = async (threads) => {
  const { ratings, visitor, options } = await (await fetch('ratings.json')).json();
  const { model, device, iterations } = await trainAls(ratings, { ...options, threads });
  const { items } = await model.recommend({ ratings: visitor }, 5);
  await model.close();
  return { device, losses: iterations.map(({ loss }) => loss), items };
};
</script></html>`;

describe.skipIf(refusal !== undefined)('threads of a page', () => {
  let [server, browser, session]: [PageServer?, Chromium?, Session?] = [];
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
    const built = resolve(import.meta.dirname, '../../dist/page');
    for (const file of ['index.js', 'page-worker.js']) cpSync(join(built, file), join(folder, file));
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'ratings.json'), JSON.stringify({ ratings: triples, visitor, options }));
    server = await PageServer.open(folder);
    server.isolated = true;
    browser = await Chromium.open();
    await browser.show(`${server.url}/`, { width: 360, height: 740 });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    await session?.close();
    rmSync(folder, { recursive: true });
  });

  it('give the bits of Node', async () => {
    expect(await browser?.value('crossOriginIsolated')).toBe(true);
    const own = await new ALS(options).fit(session!.fromRows(triples));
    const { items } = await own.recommend({ ratings: visitor }, 5);
    const losses = own.training!.iterations.map(({ loss }) => loss);
    for (const threads of [1, 3]) {
      const page = await browser!.value<Trained>(`train(${threads})`);
      expect(page.device).toContain(threads === 1 ? "the page's thread" : '3 threads');
      expect([page.losses, page.items]).toEqual([losses, items]);
    }
    await own.close();
  });

  it('are left out where the server has no file for them', async () => {
    server!.answer = ({ path, response }) => {
      if (!path.endsWith('page-worker.js')) return false;
      response.writeHead(404).end();
      return true;
    };
    const { device, losses } = await browser!.value<Trained>('train(2)');
    expect([device.includes("the page's thread"), losses.length]).toEqual([true, options.maxIter]);
  });
});
