/**
 * The entry for pages in headless Chromium, from a plain file server: the results of Node's model, without
 * shared memory.
 */
import { cpSync, existsSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, type Model } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

interface Trained {
  readonly iterations: readonly { readonly testRmse?: number }[];
  readonly coldPairs: number;
  readonly seconds: number;
  readonly items: readonly object[];
}

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: the entry for pages in a browser. ${refusal}`);
const built = resolve(import.meta.dirname, '../../dist/page/index.js');
const site = served();
const { folder } = site;
const triples = randomRatings(3, 300, 1000, 8000);
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
  let browser: Chromium;
  let model: Model;
  beforeAll(async () => {
    expect(existsSync(built), 'npm run build makes dist/page').toBe(true);
    model = await new ALS({ rank: 32, maxIter: 1, seed: 2 }).fit(site.session.fromRows(triples));
    await model.save(join(folder, 'model'));
    cpSync(built, join(folder, 'index.js'));
    cpSync(join(built, '../page-gpu.js'), join(folder, 'page-gpu.js'));
    writeFileSync(join(folder, 'index.html'), PAGE);
    writeFileSync(join(folder, 'worker.js'), WORKER);
    browser = await Chromium.open();
    await browser.show(`${site.server.url}/`, { width: 360, height: 740 });
    await browser.value('window.opened.then(() => true)');
  });
  afterAll(() => browser.close());

  it('gives the recommendations, similar items and explanations of Node', async () => {
    const isolated = '[window.crossOriginIsolated, typeof SharedArrayBuffer, window.model.itemCount]';
    expect(await browser.value(isolated)).toEqual([false, 'undefined', model.itemCount]);
    const visitor = JSON.stringify({ ratings });
    expect(await browser.value(`window.model.recommend(${visitor}, 20)`)).toEqual(
      await model.recommend({ ratings }, 20),
    );
    const [{ item }] = ratings;
    expect(await browser.value(`window.model.similar(${item}, 20)`)).toEqual(await model.similar(item, 20));
    const own = JSON.stringify(ratings);
    expect(await browser.value(`window.model.explain(${own}, ${item})`)).toEqual(
      await model.explain(ratings, item),
    );
  });

  it('trains in a web worker as Node does', async () => {
    const [train, test] = [triples.slice(0, 7000), triples.slice(7000)];
    const options = { rank: 16, maxIter: 2, seed: 7 };
    const message = JSON.stringify({ ratings: train, options: { ...options, test } });
    const trained = await browser.value<Trained>(`new Promise((resolve, reject) => {
      const worker = new Worker('worker.js', { type: 'module' });
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(${message});
    })`);
    const own = await new ALS(options).fit(site.session.fromRows(train), {
      validation: site.session.fromRows(test),
    });
    const last = own.training?.iterations.at(-1);
    expect(trained.iterations.at(-1)?.testRmse).toBeCloseTo(last?.testRmse ?? 0, 3);
    expect(trained.coldPairs).toBe(own.training?.coldPairs);
    const visitor = train.slice(0, 5).map(({ item, rating }) => ({ item, rating }));
    expect(trained.items).toEqual((await own.recommend({ ratings: visitor }, 10)).items);
    await own.close();
  });

  it('computes on the processor where the browser has no WebGPU', async () => {
    const few = JSON.stringify(triples.slice(0, 300));
    const train = (device: string) =>
      `window.factorflow.trainAls(${few}, { rank: 2, maxIter: 1, device: '${device}' })`;
    expect(await browser.value(`${train('auto')}.then(({ device }) => device)`)).toContain('WebAssembly');
    const failed = `${train('gpu')}.catch(({ name, message }) => name + ': ' + message)`;
    expect(await browser.value(failed)).toContain('UsageError: open: this browser gives the page no WebGPU');
  });

  it('works without the server once the model is loaded', async () => {
    await site.server.close();
    expect(await browser.value(`window.model.recommend(${JSON.stringify({ ratings })}, 5)`)).toEqual(
      await model.recommend({ ratings }, 5),
    );
    const opened = "window.factorflow.openModel('model/')";
    expect(await browser.value(`${opened}.catch(({ name, message }) => name + ': ' + message)`)).toContain(
      'DataError: open: the request failed',
    );
  });
});

describe('several threads', () => {
  const site = served();
  const { folder } = site;
  interface Trained {
    readonly device: string;
    readonly losses: readonly number[];
    readonly items: readonly object[];
  }
  if (refusal !== undefined) console.log(`not tested: threads in a browser. ${refusal}`);
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
    let browser: Chromium;
    beforeAll(async () => {
      const built = resolve(import.meta.dirname, '../../dist/page');
      for (const file of ['index.js', 'page-worker.js']) cpSync(join(built, file), join(folder, file));
      writeFileSync(join(folder, 'index.html'), PAGE);
      writeFileSync(join(folder, 'ratings.json'), JSON.stringify({ ratings: triples, visitor, options }));
      site.server.isolated = true;
      browser = await Chromium.open();
      await browser.show(`${site.server.url}/`, { width: 360, height: 740 });
    });
    afterAll(() => browser.close());

    it('give the bits of Node', async () => {
      expect(await browser.value('crossOriginIsolated')).toBe(true);
      const own = await new ALS(options).fit(site.session.fromRows(triples));
      const { items } = await own.recommend({ ratings: visitor }, 5);
      const losses = own.training!.iterations.map(({ loss }) => loss);
      for (const threads of [1, 3]) {
        const page = await browser.value<Trained>(`train(${threads})`);
        expect(page.device).toContain(threads === 1 ? "the page's thread" : '3 threads');
        expect([page.losses, page.items]).toEqual([losses, items]);
      }
      await own.close();
    });

    it('are left out where the server has no file for them', async () => {
      site.server.answer = ({ path, response }) => {
        if (!path.endsWith('page-worker.js')) return false;
        response.writeHead(404).end();
        return true;
      };
      const { device, losses } = await browser.value<Trained>('train(2)');
      expect([device.includes("the page's thread"), losses.length]).toEqual([true, options.maxIter]);
    });
  });
});
