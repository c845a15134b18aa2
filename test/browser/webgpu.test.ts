/** Training in a page by WebGPU, in headless Chromium with SwiftShader, compared with Node's CPU. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type AlsOptions, Session } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { isDeep } from '../support/deep.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

interface Trained {
  readonly device: string;
  readonly iterations: readonly { readonly loss?: number; readonly testRmse?: number }[];
  readonly items: readonly { readonly item: number; readonly score: number }[];
}

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: WebGPU in a browser. ${refusal}`);
const folder = mkdtempSync(join(tmpdir(), 'factorflow-webgpu-'));
const triples = randomRatings(31, 60, 50, 1800);
const [train, test] = [triples.slice(0, -200), triples.slice(-200)];
const visitor = train.slice(0, 5).map(({ item, rating }) => ({ item, rating }));

const PAGE = `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:," />
<script type="module">
import { trainAls } from './index.js';
const { train, test, visitor } = await (await fetch('ratings.json')).json();
window.train = async ({ measured, ...given }) => {
  const options = { ...given, ...(measured && { test }) };
  const { model, device, iterations } = await trainAls(train, options);
  const { items } = await model.recommend({ ratings: visitor }, 5);
  await model.close();
  return { device, iterations, items };
};
</script></html>`;

async function openPage(url: string, webGpu: boolean): Promise<Chromium> {
  const browser = await Chromium.open({ webGpu });
  await browser.show(`${url}/`, { width: 360, height: 740 });
  await browser.value(
    'new Promise((done) => { const look = () => (window.train ? done(0) : setTimeout(look, 5)); look(); })',
  );
  return browser;
}

describe.skipIf(refusal !== undefined)('WebGPU in a page', () => {
  let [server, session]: [PageServer?, Session?] = [];
  beforeAll(async () => {
    session = await Session.create({ device: 'cpu', workers: 2 });
    for (const file of ['index.js', 'page-gpu.js'])
      cpSync(resolve(import.meta.dirname, '../../dist/page', file), join(folder, file));
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'ratings.json'), JSON.stringify({ train, test, visitor }));
    server = await PageServer.open(folder);
  });
  afterAll(async () => {
    await server?.close();
    await session?.close();
    rmSync(folder, { recursive: true });
  });

  it('trains as the CPU does', async () => {
    const browser = await openPage(server!.url, true);
    try {
      for (const options of [
        { rank: 4, maxIter: 2, seed: 7 },
        ...(isDeep ? [{ rank: 4, maxIter: 2, seed: 7, implicitPrefs: true, alpha: 2 }] : []),
      ] as AlsOptions[]) {
        const given = { ...options, device: 'gpu', measured: !options.implicitPrefs };
        const page = await browser.value<Trained>(`train(${JSON.stringify(given)})`);
        expect(page.device).toContain('swiftshader');
        const validation = options.implicitPrefs ? undefined : session!.fromRows(test);
        const own = await new ALS(options).fit(session!.fromRows(train), { validation });
        const last = own.training!.iterations.at(-1)!;
        expect(page.iterations).toHaveLength(2);
        expect(page.iterations.at(-1)!.loss! / last.loss!).toBeCloseTo(1, 4);
        if (validation) expect(page.iterations.at(-1)!.testRmse).toBeCloseTo(last.testRmse!, 3);
        const { items } = await own.recommend({ ratings: visitor }, 5);
        expect(page.items.map(({ item }) => item)).toEqual(items.map(({ item }) => item));
        await own.close();
      }
      expect(browser.complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
