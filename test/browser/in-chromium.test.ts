/**
 * The entry for pages in headless Chromium, from a plain file server: the results of Node's model, without
 * shared memory.
 */
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Model, Session } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { randomRatings } from '../support/ratings.ts';
import { PageServer } from './page-server.ts';

interface Trained {
  readonly iterations: readonly { readonly testRmse?: number }[];
  readonly coldPairs: number;
  readonly seconds: number;
  readonly items: readonly object[];
}

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: the entry for pages in a browser. ${refusal}`);
const ITEMS = 10_000;
const built = resolve(import.meta.dirname, '../../dist/page/index.js');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-chromium-'));
const triples = randomRatings(3, 1500, ITEMS, 60_000);
const ratings = triples.slice(0, 10).map(({ item, rating }) => ({ item, rating }));

/** Trains on ratings that it makes itself, as a page does on the visitor's own. */
const WORKER = `import { trainAls } from './index.js';
onmessage = async ({ data: { ratings, options } }) => {
  const { model, iterations, coldPairs, seconds } = await trainAls(ratings, options);
  const { items } = await model.recommend({ ratings: ratings.slice(0, 5) }, 10);
  postMessage({ iterations, coldPairs, seconds, items });
};`;

const PAGE = `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:," />
<script type="module">
import * as factorflow from './index.js';
window.factorflow = factorflow;
window.opened = factorflow.openModel('model/').then((model) => (window.model = model));
</script></html>`;

describe.skipIf(refusal !== undefined)('in Chromium, on a page that is not cross-origin isolated', () => {
  let [server, browser, session, model]: [PageServer?, Chromium?, Session?, Model?] = [];
  beforeAll(async () => {
    expect(existsSync(built), 'npm run build makes dist/page').toBe(true);
    session = await Session.create({ device: 'cpu', workers: 2 });
    model = await new ALS({ rank: 64, maxIter: 1, seed: 2 }).fit(session.fromRows(triples));
    await model.save(join(folder, 'model'));
    cpSync(built, join(folder, 'index.js'));
    cpSync(join(built, '../page-gpu.js'), join(folder, 'page-gpu.js'));
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'worker.js'), WORKER);
    server = await PageServer.open(folder);
    browser = await Chromium.open();
    await browser.show(`${server.url}/`, { width: 360, height: 740 });
    await browser.value('window.opened.then(() => true)');
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    await session?.close();
    rmSync(folder, { recursive: true });
  });

  it('gives the recommendations, similar items and explanations of Node', async () => {
    const isolated = '[window.crossOriginIsolated, typeof SharedArrayBuffer, window.model.itemCount]';
    expect(await browser?.value(isolated)).toEqual([false, 'undefined', model?.itemCount]);
    const visitor = JSON.stringify({ ratings });
    expect(await browser?.value(`window.model.recommend(${visitor}, 20)`)).toEqual(
      await model?.recommend({ ratings }, 20),
    );
    const [{ item }] = ratings;
    expect(await browser?.value(`window.model.similar(${item}, 20)`)).toEqual(await model?.similar(item, 20));
    const own = JSON.stringify(ratings);
    expect(await browser?.value(`window.model.explain(${own}, ${item})`)).toEqual(
      await model?.explain(ratings, item),
    );
  });

  it('recommends at once', async () => {
    const times = await browser?.value<number[]>(`(async () => {
      const [times, given] = [[], ${JSON.stringify(ratings)}];
      for (let k = 0; k < 60; k++) {
        const ratings = given.map(({ item, rating }, i) => ({ item, rating: rating + ((i * k) % 3) / 2 }));
        const start = performance.now();
        await window.model.recommend({ ratings }, 20);
        times.push(performance.now() - start);
      }
      return times.slice(10).sort((a, b) => a - b);
    })()`);
    const [p50, p95] = [0.5, 0.95].map((part) => times?.[Math.floor(part * times.length)] ?? Number.NaN);
    console.log(`10 ratings, ${model?.itemCount} items: p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms`);
    expect(p50).toBeLessThan(1000);
  });

  it('trains in a web worker as Node does', async () => {
    const [train, test] = [triples.slice(0, 54_000), triples.slice(54_000)];
    const options = { rank: 16, maxIter: 4, seed: 7 };
    const message = JSON.stringify({ ratings: train, options: { ...options, test } });
    const trained = await browser?.value<Trained>(`new Promise((resolve, reject) => {
      const worker = new Worker('worker.js', { type: 'module' });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(${message});
    })`);
    const own = await new ALS(options).fit(session!.fromRows(train), { validation: session!.fromRows(test) });
    const last = own.training?.iterations.at(-1);
    console.log(`54,000 ratings, rank 16, 4 iterations in a worker: ${trained?.seconds.toFixed(1)} s`);
    expect(trained?.iterations.at(-1)?.testRmse).toBeCloseTo(last?.testRmse ?? 0, 3);
    expect(trained?.coldPairs).toBe(own.training?.coldPairs);
    const visitor = train.slice(0, 5).map(({ item, rating }) => ({ item, rating }));
    expect(trained?.items).toEqual((await own.recommend({ ratings: visitor }, 10)).items);
    await own.close();
  });

  it('computes on the processor where the browser has no WebGPU', async () => {
    const few = JSON.stringify(triples.slice(0, 300));
    const train = (device: string) =>
      `window.factorflow.trainAls(${few}, { rank: 2, maxIter: 1, device: '${device}' })`;
    expect(await browser?.value(`${train('auto')}.then(({ device }) => device)`)).toContain('WebAssembly');
    const failed = `${train('gpu')}.catch(({ name, message }) => name + ': ' + message)`;
    expect(await browser?.value(failed)).toContain('UsageError: open: this browser gives the page no WebGPU');
  });

  it('works without the server once the model is loaded', async () => {
    await server?.close();
    server = undefined;
    expect(await browser?.value(`window.model.recommend(${JSON.stringify({ ratings })}, 5)`)).toEqual(
      await model?.recommend({ ratings }, 5),
    );
    const opened = "window.factorflow.openModel('model/')";
    expect(await browser?.value(`${opened}.catch(({ name, message }) => name + ': ' + message)`)).toContain(
      'DataError: open: the request failed',
    );
  });
});
