/** Recommendations of a page by WebGPU, in headless Chromium with SwiftShader, compared with WebAssembly. */
import { cpSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isWorthGpu } from '../../browser/device-choice.ts';
import type { PageModel } from '../../browser/index.ts';
import { ALS, type AlsOptions } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';
import { isDeep } from '../support/deep.ts';

/** The outcome of a method in the page. */
interface Outcome<Result = unknown> {
  readonly result?: Result;
  readonly error?: string;
  /** Texts of notes and warnings. */
  readonly texts: readonly string[];
}

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: recommendations by WebGPU in a browser. ${refusal}`);
const site = served();
const { folder } = site;

/**
 * `ask` calls a method of a model. `card`: the adapter says that it is a graphics card. `hidden`: the browser
 * has no WebGPU. `lost`: the GPU is lost before the call. `atNote`: the method is cancelled, or the model closed, once the GPU is chosen.
 */
const PAGE = `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:," />
<script type="module">
import { openModel, webGpu } from './index.js';
const adapter = GPUAdapter.prototype;
const { requestDevice } = adapter;
const info = Object.getOwnPropertyDescriptor(adapter, 'info');
let device;
adapter.requestDevice = async function (...given) {
  return (device = await requestDevice.apply(this, given));
};
const models = new Map();
window.ask = async (name, method, [ids, n, options], { card, hidden, lost, atNote } = {}) => {
  const graphics = { vendor: 'a', architecture: 'card', device: '', description: '' };
  Object.defineProperty(adapter, 'info', card ? { get: () => graphics, configurable: true } : info);
  if (!models.has(name)) models.set(name, await openModel(name, { webGpu, index: name === 'indexed' }));
  const model = models.get(name);
  if (hidden) Object.defineProperty(navigator, 'gpu', { value: undefined, configurable: true });
  else delete navigator.gpu;
  if (lost) device.destroy();
  const controller = new AbortController();
  const texts = [];
  const onEvent = ({ type, text }) => {
    if (text) texts.push(text);
    if (type !== 'note') return;
    if (atNote === 'cancel') controller.abort();
    if (atNote === 'close') void model.close();
  };
  try {
    return { result: await model[method](ids, n, { ...options, onEvent, signal: controller.signal }), texts };
  } catch (error) {
    return { error: error.name + ': ' + error.message, texts };
  }
};
</script></html>`;

const triples = randomRatings(31, 60, 90, 1800);
const users = [...new Set(triples.map(({ user }) => user))];
const visitors = users.map((user) => ({
  ratings: triples.filter((row) => row.user === user).map(({ item, rating }) => ({ item, rating })),
}));
/** The ratings of a visitor that name no item of the model. */
const stranger = { ratings: [{ item: 99_999, rating: 3 }] };

interface Listed {
  readonly items?: readonly { readonly item: unknown; readonly score: number }[];
  readonly similar?: readonly { readonly item: unknown; readonly similarity: number }[];
}

/** Lists of two devices have the same items, with the scores of float32 products in another order. */
function expectSameLists(
  given: readonly Listed[] | undefined,
  expected: readonly Listed[] | undefined,
): void {
  const rowsOf = ({ items, similar }: Listed) =>
    items?.map(({ item, score }) => [item, score] as const) ??
    similar!.map(({ item, similarity }) => [item, similarity] as const);
  const lists = (all: readonly Listed[] = []) => all.map(rowsOf);
  const ids = (all: readonly Listed[] | undefined) => lists(all).map((rows) => rows.map(([id]) => id));
  expect(ids(given)).toEqual(ids(expected));
  const scores = (all: readonly Listed[] | undefined) =>
    lists(all).flatMap((rows) => rows.map(([, score]) => score));
  const apart = scores(given).map((score, at) => Math.abs(score - scores(expected)[at]));
  expect(apart.length).toBeGreaterThan(0);
  expect(Math.max(...apart)).toBeLessThan(1e-5);
}

it('auto uses a GPU for many users and much work alone', () => {
  expect(isWorthGpu({ users: 1, items: 5_000_000, rank: 512 })).toBe(false);
  expect(isWorthGpu({ users: 500, items: 10_000, rank: 32 })).toBe(false);
  expect(isWorthGpu({ users: 2000, items: 10_000, rank: 32 })).toBe(true);
  expect(isWorthGpu({ users: 100, items: 300_000, rank: 64 })).toBe(true);
});

describe.skipIf(refusal !== undefined)('recommendations by WebGPU in a page', () => {
  let browser: Chromium;
  const show = async () => {
    await browser.show(`${site.server.url}/`, { width: 360, height: 740 });
    await browser.value(
      'new Promise((done) => { const look = () => (window.ask ? done(0) : setTimeout(look, 5)); look(); })',
    );
  };
  beforeAll(async () => {
    const sideOf = (side: 'user' | 'item', more: readonly number[]) => ({
      data: site.session.fromRows(
        [...new Set([...triples.map((row) => row[side]), ...more])].map((id) => ({
          [side]: id,
          kind: `k${id % 3}`,
        })),
      ),
      id: side,
    });
    // Some items have no ratings, and visitors are drawn to what is predicted of users.
    const attributes = {
      itemAttributes: sideOf('item', [5001, 5002]),
      userAttributes: sideOf('user', [5003]),
    };
    const small = await new ALS({ rank: 6, maxIter: 2, seed: 7, ...attributes }).fit(
      site.session.fromRows(triples),
    );
    await small.save(join(folder, 'small'));
    await small.save(join(folder, 'indexed'));
    await small.buildIndex({ lists: 9, seed: 4 });
    await small.saveIndex(join(folder, 'indexed'));
    const wide = await new ALS({ rank: 40, maxIter: 1, seed: 1 }).fit(
      site.session.fromRows(randomRatings(5, 400, 3700, 20_000)),
    );
    await wide.save(join(folder, 'wide'));
    for (const file of ['index.js', 'page-gpu.js'])
      cpSync(resolve(import.meta.dirname, '../../dist/page', file), join(folder, file));
    writeFileSync(join(folder, 'index.html'), PAGE);
    browser = await Chromium.open({ webGpu: true });
  });
  afterAll(() => browser.close());

  const ask = <Method extends 'recommend' | 'recommendToVisitors' | 'similar' | 'similarItems'>(
    model: 'small' | 'wide' | 'indexed',
    method: Method,
    given: Parameters<PageModel[Method]>,
    how: object = {},
  ) =>
    browser.value<Outcome<Awaited<ReturnType<PageModel[Method]>>>>(
      `ask(${[model, method, given, how].map((value) => JSON.stringify(value)).join()})`,
    );

  it('auto chooses the processor where the GPU is software, or its code is missing', async () => {
    await show();
    const software = await ask('wide', 'similarItems', ['all', 3]);
    expect(software.texts).toEqual([]);
    await show();
    site.server.answer = ({ path, response }) => {
      if (path !== '/page-gpu.js') return false;
      response.writeHead(404).end();
      return true;
    };
    const missing = await ask('wide', 'similarItems', ['all', 3]);
    site.server.reset();
    expect(missing.texts).toEqual([
      expect.stringMatching(/^the GPU was not opened \(.*page-gpu.*\); the request/),
    ]);
    expect(missing.result?.length).toBeGreaterThan(3500);
    expect(missing.result).toEqual(software.result);
  });

  it('has the lists of WebAssembly', async () => {
    await show();
    const hidden = await ask('small', 'recommend', [visitors[0], 3, { device: 'gpu' }], { hidden: true });
    expect(hidden.error).toMatch(/^UsageError: .*this browser gives the page no WebGPU adapter.*'auto'/);
    const both = async <Method extends 'recommendToVisitors' | 'similarItems'>(
      method: Method,
      [ids, n, options = {}]: Parameters<PageModel[Method]>,
    ) => {
      const on = (device: string) =>
        ask('small', method, [ids, n, { ...options, device }] as unknown as Parameters<PageModel[Method]>);
      const [gpu, cpu] = [await on('gpu'), await on('cpu')];
      expect([gpu.error, gpu.texts]).toEqual([
        undefined,
        [expect.stringMatching(/by WebGPU: .*swiftshader/i)],
      ]);
      expect(cpu.texts).toEqual([]);
      expectSameLists(gpu.result, cpu.result);
      return gpu.result!;
    };
    expect(await both('recommendToVisitors', [visitors, 10])).toHaveLength(60);
    const [{ ratings }] = visitors;
    const denied = ratings.map(({ item }) => item + 3);
    const allow = triples.slice(0, 40).map(({ item }) => item);
    await both('recommendToVisitors', [visitors, 10, { deny: denied }]);
    const short = await both('recommendToVisitors', [visitors, 50, { allow, deny: denied, regParam: 0.3 }]);
    expect(short.some((list) => list.short && list.items.length > 0)).toBe(true);
    const cold = await both('recommendToVisitors', [
      [visitors[1], stranger, visitors[2]],
      4,
      { unknownUsers: 'popular' },
    ]);
    expect(cold.map(({ fallback, unknownItems }) => [fallback, unknownItems])).toEqual([
      [undefined, 0],
      ['popular', 1],
      [undefined, 0],
    ]);
    const none = await ask('small', 'recommendToVisitors', [visitors, 3, { device: 'gpu', allow: [] }]);
    expect(none.result!.every(({ items, short }) => items.length === 0 && short)).toBe(true);
    await both('similarItems', ['all', 7]);
    await both('similarItems', [denied.slice(0, 1).concat(allow.slice(0, 3)), 7, { similarity: 'dot' }]);
    const together = [10, 4].map((n) =>
      ask('small', 'recommendToVisitors', [visitors, n, { device: 'gpu' }]),
    );
    const [ten, four] = await Promise.all(together);
    expect(four.result!.map(({ items }) => items)).toEqual(ten.result!.map(({ items }) => items.slice(0, 4)));
    const one = await ask('small', 'recommend', [visitors[3], 5, { device: 'gpu' }]);
    expectSameLists([one.result!], (await ask('small', 'recommendToVisitors', [[visitors[3]], 5])).result);
    const item = allow[0];
    const like = await ask('small', 'similar', [item, 5, { device: 'gpu' }]);
    expectSameLists([like.result!], [(await ask('small', 'similar', [item, 5])).result!]);
    const error = await ask('small', 'recommendToVisitors', [
      [stranger],
      4,
      { device: 'gpu', unknownUsers: 'error' },
    ]);
    expect(error.error).toContain('knows no item');
    // The request that was answered by 404 above.
    expect(browser.complaints).toEqual([expect.stringContaining('404')]);
  });

  it('continues on the processor when the GPU is lost, and opens it again', async () => {
    const cpu = await ask('small', 'similarItems', ['all', 5, { device: 'cpu' }]);
    const lost = await ask('small', 'similarItems', ['all', 5, { device: 'gpu' }], { lost: true });
    expect(lost.texts).toEqual([
      expect.stringContaining('by WebGPU'),
      expect.stringMatching(/lost.*; the request is computed on the processor$/),
    ]);
    expect(lost.result).toEqual(cpu.result);
    const again = await ask('small', 'similar', [triples[0].item, 5, { device: 'gpu' }], {
      atNote: 'cancel',
    });
    expect(again.texts).toHaveLength(1);
    expect(again.error).toMatch(/^CancelledError/);
  });

  it('auto chooses a graphics card for large searches, which can be cancelled', async () => {
    await show();
    for (const method of ['similarItems', 'recommendToVisitors'] as const) {
      const given = method === 'similarItems' ? 'all' : Array.from({ length: 4000 }, () => visitors[0]);
      const many = await ask('wide', method, [given, 3] as never, { card: true, atNote: 'cancel' });
      expect(many.texts).toEqual(['the request is computed by WebGPU: a card']);
      expect(many.error).toMatch(/^CancelledError/);
    }
    const few = await ask('wide', 'recommendToVisitors', [visitors, 3], { card: true });
    expect(few.texts).toEqual([]);
    const closed = await ask('wide', 'similarItems', ['all', 3], { card: true, atNote: 'close' });
    expect(closed.error).toMatch(/closed/);
  });

  it('reads the factors of all items for a search by WebGPU of a model that was opened with its index', async () => {
    await show();
    const like = triples[0].item;
    const refused = await ask('indexed', 'similarItems', [[like], 2, { index: 3, device: 'gpu' }]);
    expect(refused.error).toMatch(/^UsageError: similarItems searches an index on the processor/);
    const listed = await ask('indexed', 'recommendToVisitors', [visitors.slice(0, 2), 5]);
    expect([listed.error, listed.texts]).toEqual([undefined, []]);
    const by = (device: string) => [visitors, 10, { device }] as never;
    const onGpu = await ask('indexed', 'recommendToVisitors', by('gpu'));
    expect([onGpu.error, onGpu.texts]).toEqual([undefined, [expect.stringContaining('by WebGPU')]]);
    expectSameLists(onGpu.result, (await ask('small', 'recommendToVisitors', by('cpu'))).result);
  });
});

describe('training', () => {
  const site = served();
  const { folder } = site;
  interface Trained {
    readonly device: string;
    readonly iterations: readonly { readonly loss?: number; readonly testRmse?: number }[];
    readonly items: readonly { readonly item: number; readonly score: number }[];
  }
  if (refusal !== undefined) console.log(`not tested: WebGPU in a browser. ${refusal}`);
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
    beforeAll(() => {
      for (const file of ['index.js', 'page-gpu.js'])
        cpSync(resolve(import.meta.dirname, '../../dist/page', file), join(folder, file));
      writeFileSync(join(folder, 'index.html'), PAGE);
      writeFileSync(join(folder, 'ratings.json'), JSON.stringify({ train, test, visitor }));
    });
    it('trains as the CPU does', async () => {
      const browser = await openPage(site.server.url, true);
      try {
        for (const options of [
          { rank: 4, maxIter: 2, seed: 7 },
          ...(isDeep ? [{ rank: 4, maxIter: 2, seed: 7, implicitPrefs: true, alpha: 2 }] : []),
        ] as AlsOptions[]) {
          const given = { ...options, device: 'gpu', measured: !options.implicitPrefs };
          const page = await browser.value<Trained>(`train(${JSON.stringify(given)})`);
          expect(page.device).toContain('swiftshader');
          const validation = options.implicitPrefs ? undefined : site.session.fromRows(test);
          const own = await new ALS(options).fit(site.session.fromRows(train), { validation });
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
});
