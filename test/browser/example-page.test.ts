/**
 * The example page in headless Chromium, from a plain file server: by keyboard, at three widths, with names
 * for screen readers, and without the server.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALS, col } from '../../index.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { PageServer } from './page-server.ts';
import { cpuSession } from '../support/cpu-session.ts';

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: the example page in a browser. ${refusal}`);
const root = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-example-page-'));
/** A folder for pictures of the page, to be looked at. */
const pictures = process.env.FACTORFLOW_PICTURES;
const [narrow, medium, wide] = [360, 768, 1280].map((width) => ({ width, height: 900 }));

/** Waits until an expression in the page is true. */
const until = (condition: string) =>
  `new Promise((done) => { const look = () => (${condition}) ? done(true) : setTimeout(look, 20); look(); })`;
const titles = `[...document.querySelectorAll('#found li > span')].map((one) => one.firstChild.textContent)`;
const found = `[...document.querySelectorAll('#found li')].map(({ dataset }) => Number(dataset.item))`;

describe.skipIf(refusal !== undefined)('the example page', () => {
  let [server, browser]: [PageServer?, Chromium?] = [];
  const page = () => browser as Chromium;
  const picked = (count: number) =>
    page().value(
      until(
        `document.querySelectorAll('#picked li').length === ${count} && document.querySelectorAll('#found li').length === 10`,
      ),
    );
  const pick = async (words: string, count: number) => {
    await page().value(`document.getElementById('search').focus()`);
    await page().type(words);
    await page().value(until(`document.querySelectorAll('#matches li').length > 0`));
    await page().press('Enter');
    await picked(count);
  };
  const picture = async (name: string) => {
    if (pictures === undefined) return;
    mkdirSync(pictures, { recursive: true });
    writeFileSync(join(pictures, `${name}.png`), await page().picture());
  };

  beforeAll(async () => {
    execFileSync(process.execPath, [join(root, 'examples/browser/make-page.ts'), folder], { cwd: root });
    server = await PageServer.open(folder);
    browser = await Chromium.open();
    await browser.show(`${server.url}/`, narrow);
    await browser.value(until(`!document.getElementById('search').disabled`));
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  it('recommends by films that are picked with the keyboard, as Node does', async () => {
    await picture('start');
    await page().value(`document.getElementById('search').focus()`);
    await page().type('matrix');
    await page().value(until(`document.querySelectorAll('#matches li').length > 1`));
    await picture('search');
    await page().press('ArrowDown');
    expect(
      await page().value(`document.getElementById('search').getAttribute('aria-activedescendant')`),
    ).toBe('match-1');
    await page().press('ArrowUp');
    await page().press('Enter');
    await picked(1);
    await pick('inception', 2);
    await pick('star wars', 3);
    const names = await page().value<string[]>(
      `[...document.querySelectorAll('#picked li > span')].map((one) => one.textContent)`,
    );
    expect(names.slice(0, 2)).toEqual(['The Matrix (1999)', 'Inception (2010)']);
    expect(new Set(await page().value<string[]>(titles)).size).toBe(10);
    const buttons = `document.querySelectorAll('#picked button')`;
    expect(await page().value(`${buttons}[0].getAttribute('aria-label')`)).toBe('Remove The Matrix (1999)');
    await page().value(`${buttons}[0].focus()`);
    await page().press('Enter');
    await picked(2);
    await picture('narrow');
    expect(await page().value(`document.activeElement.id`)).toBe('search');
  });

  it('has the lists of Node', async () => {
    const films = await page().value<[number, string][]>(`fetch('films.json').then((one) => one.json())`);
    const names = await page().value<string[]>(
      `[...document.querySelectorAll('#picked li > span')].map((one) => one.textContent)`,
    );
    const items = names.map((name) => films.find(([, title]) => title === name)?.[0] ?? NaN);
    const session = await cpuSession({ workers: 1 });
    const data = join(root, 'examples/data/movietweetings-100k/ratings.parquet');
    const liked = session.read.parquet(data).filter(col('rating').ge(7));
    // The settings of make-page.ts, whose folder lacks the users.
    const als = new ALS({ implicitPrefs: true, rank: 32, alpha: 1, regParam: 0.1, maxIter: 10, seed: 1 });
    const model = await als.fit(liked);
    const ratings = items.map((item) => ({ item, rating: 10 }));
    const list = await model.recommend({ ratings }, 10, { deny: items });
    expect(await page().value(found)).toEqual(list.items.map(({ item }) => item));
    const milliseconds = await page().value<string>(`document.getElementById('status').dataset.milliseconds`);
    console.log(`${films.length} films: found in ${Number(milliseconds).toFixed(1)} ms`);
  });

  it('gives each control a name, and no width scrolls sideways', async () => {
    const unnamed = `[...document.querySelectorAll('button, input, ul[role], section')].filter((one) =>
      !(one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.labels?.length)).length`;
    expect(await page().value(unnamed)).toBe(0);
    expect(await page().value(`document.querySelectorAll('h1').length`)).toBe(1);
    for (const view of [narrow, medium, wide]) {
      for (const dark of [false, true]) {
        await page().resize({ ...view, dark });
        expect(await page().value(`document.documentElement.scrollWidth`)).toBeLessThanOrEqual(view.width);
        await picture(`${view.width}${dark ? '-dark' : ''}`);
      }
    }
    expect(page().complaints).toEqual([]);
  });

  it('works without the server, also when it is loaded again', async () => {
    await page().value(until(`document.documentElement.dataset.offline === 'ready'`));
    const address = server?.url;
    await server?.close();
    server = undefined;
    await pick('alien', 3);
    await page().show(`${address}/`, narrow);
    await page().value(until(`!document.getElementById('search').disabled`));
    await pick('gravity', 1);
  });
});
