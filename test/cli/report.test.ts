/** The page of --report: its contents, what it holds of the input as text alone, its looks in a browser. */
import { readFileSync, writeFileSync, copyFileSync } from 'node:fs';
import { parseHTML } from 'linkedom';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { environmentSection } from '../../cli/page/page.ts';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { page, path, ratings } from './reported-training.ts';
import { argv, factorflow as runCli } from './run-cli.ts';

describe('--report of train', () => {
  it('has the parts of a run', () => {
    for (const heading of [
      'Recommendations',
      'Map of items',
      'Summary',
      'Parameters',
      'Iterations',
      'Errors on held-out ratings',
      'Ratings',
      'Plan',
      'Time',
      'Run it again',
    ])
      expect(page).toContain(`<h2>${heading}</h2>`);
    for (const text of [
      'test RMSE',
      'damped means',
      'update-items × 3',
      'Calibration',
      'Users by their number of ratings',
      'Error by rating',
    ])
      expect(page).toContain(text);
  });

  it('begins with the result, its numbers and the test error by iteration', () => {
    const { document } = parseHTML(page);
    expect(document.querySelector('main > .verdict')?.textContent).toMatch(
      /(better|worse) than means of users and items|than the mean rating/,
    );
    const tiles = [...document.querySelectorAll('.tiles dt')].map(({ textContent }) => textContent);
    expect(tiles).toEqual(['test RMSE', 'iteration of the model', 'time', 'peak memory', 'ratings']);
    expect(document.querySelector('main > figure strong')?.textContent).toBe('Test RMSE by iteration');
    const tips = [...document.querySelectorAll('main > figure .wide .tip')].map((one) =>
      one.getAttribute('data-tip'),
    );
    expect(tips.at(-1)).toMatch(/^iteration 3, the model\ntest RMSE \d\.\d{4}$/);
  });

  it('shows the parameters that acted, and no others', () => {
    const shown = [...parseHTML(page).document.querySelectorAll('#parameters dt')].map(
      ({ textContent }) => textContent,
    );
    expect(shown).toEqual(expect.arrayContaining(['rank', 'regParam', 'biases', 'biasDamping', 'solver']));
    for (const idle of ['alpha', 'precision', 'partitionSums', 'nonnegative', 'implicitPrefs'])
      expect(shown).not.toContain(idle);
  });

  it('shows users with what they rated highest and what they have not rated', () => {
    const samples = [...parseHTML(page).document.querySelectorAll('#recommendations .sample')];
    expect(samples.map((one) => one.querySelector('h3')?.textContent)).toEqual(
      [1, 2, 3].map(() => expect.stringMatching(/^User \d+, \d+ ratings$/)),
    );
    for (const sample of samples) {
      const [rated, found] = [...sample.querySelectorAll('tbody')].map((body) =>
        [...body.querySelectorAll('td:first-child')].map(({ textContent }) => textContent),
      );
      expect(rated).toHaveLength(6);
      expect(found.length).toBeGreaterThan(3);
      expect(found.filter((item) => rated.includes(item))).toEqual([]);
      const ratings = [...sample.querySelectorAll('tbody')][0].querySelectorAll('td.number');
      expect([...ratings].map(({ textContent }) => Number(textContent))).toEqual(
        [...ratings].map(({ textContent }) => Number(textContent)).toSorted((a, b) => b - a),
      );
    }
  });

  it('maps the items, with texts of their ids and numbers of ratings', () => {
    const map = parseHTML(page).document.querySelector('#map-of-items .map');
    const dots = [...(map?.querySelectorAll('i') ?? [])];
    expect(dots).toHaveLength(40);
    expect(new Set(dots.map((one) => one.getAttribute('style'))).size).toBeGreaterThan(30);
    for (const dot of dots)
      expect(dot.getAttribute('data-tip')).toMatch(/^<img src=x onerror=alert\(\d+\)>\n\d+ ratings$/);
  });

  it('runs no script, asks for no address, and names what charts show in words', () => {
    expect(page).not.toMatch(/<script|<link|<iframe|@import|url\((?!#)|(src|href)="(?!#)/i);
    expect(page).toContain("default-src 'none'");
    const charts = page.match(/<div class="chart \w+">.*?aria-label="[^"]{20,}"/g) ?? [];
    expect(charts.length).toBe(page.match(/<div class="chart /g)?.length);
    expect(charts.length).toBeGreaterThan(10);
  });

  it('holds names from the input as text', () => {
    expect(parseHTML(page).document.querySelectorAll('b, img')).toHaveLength(0);
    expect(page.replaceAll(/ data-tip="[^"]*"/g, '')).not.toMatch(/<b>|<img/);
    expect(page).toContain('ratings &lt;b&gt;&amp;amp;.csv');
  });

  it('repeats the command without credentials and queries of addresses', () => {
    const { code } = environmentSection(
      argv`train ${'https://user:word@host/a b.csv?token=1'} --test=http://user:word@host/t.csv
        --rank 4`,
      null,
    );
    expect(code).toBe("factorflow train 'https://host/a b.csv' --test=http://host/t.csv --rank 4");
  });

  it('replaces an earlier report, and no other file', async () => {
    const reported = async (name: string) => {
      const counts = argv`--users 1000 --items 500 --ratings 20000 --rank 8 --device cpu`;
      return (await runCli('plan', ...counts, '--report', path(name))).code;
    };
    expect(await reported('train.html')).toBe(0);
    const text = readFileSync(path('train.html'), 'utf8');
    expect(text.match(/<g class="stage /g)).toHaveLength(12);
    expect(text.match(/class="edge back"/g)?.length).toBeGreaterThan(0);
    writeFileSync(path('mine.html'), '<p>mine</p>');
    expect([await reported('mine.html'), readFileSync(path('mine.html'), 'utf8')]).toEqual([
      2,
      '<p>mine</p>',
    ]);
    expect(await reported('report.pdf')).toBe(2);
    expect(await reported('absent/below/report.html')).toBe(0);
  });
});

describe('names of items', () => {
  it('stand in the place of ids, as text', async () => {
    writeFileSync(
      path('named.csv'),
      readFileSync(ratings, 'utf8').replaceAll(/<img src=x onerror=alert\((\d+)\)>/g, '$1'),
    );
    const titles = Array.from(
      { length: 40 },
      (_, k) => `${k},"<i>Film</i> & ""${k}"", ${'long '.repeat(20)}"`,
    );
    writeFileSync(path('titles.csv'), `item,title\n${titles.join('\n')}\n`);
    const named = argv`train ${path('named.csv')} --model-dir ${path('named')} --rank 1 --max-iter 2 --workers
      1 --device cpu --item-names ${path('titles.csv')} --quiet`;
    expect((await runCli(...named, '--report', path('named.html'))).code).toBe(0);
    const { document } = parseHTML(readFileSync(path('named.html'), 'utf8'));
    expect(document.querySelector('#recommendations td')?.textContent).toMatch(
      /^<i>Film<\/i> & "\d+", long .*…$/,
    );
    expect(document.querySelector('#map-of-items .map')?.className).toBe('map flat');
    expect(document.querySelector('#map-of-items .map span')?.textContent).toMatch(
      /^<i>Film<\/i> & "\d+".*…$/,
    );
    const idle = await runCli(...named, '--force');
    expect([idle.code, idle.stderr]).toEqual([
      2,
      expect.stringContaining('--item-names acts only with --report'),
    ]);
  });
});

describe('the page in a browser', () => {
  const refusal = prepareChromium();
  if (refusal !== undefined) console.log(`not tested: the looks of a report. ${refusal}`);
  const views = [
    [1200, 900, false],
    [768, 1024, true],
    [360, 740, false],
  ] as const;
  it.skipIf(refusal !== undefined).each(views)(
    'fits %d x %d pixels, dark: %s, without an error',
    async (width, height, dark) => {
      const browser = await Chromium.open();
      try {
        await browser.show(pathToFileURL(path('shown.html')).href, { width, height, dark });
        const { scroll, inner, figures, drawn, foreign } = await browser.value<Looks>(LOOKS);
        expect(scroll).toBeLessThanOrEqual(inner);
        expect(figures).toBeGreaterThan(8);
        expect(drawn).toBe(figures);
        expect(foreign).toBe(0);
        expect(browser.complaints).toEqual([]);
        expect(await hovered(browser)).toContain('iteration 2');
      } finally {
        await browser.close();
      }
    },
    60_000,
  );
});

/** The text that appears over the second point of the first chart. */
async function hovered(browser: Chromium): Promise<string> {
  const shown =
    "[...document.querySelectorAll('figure .tip')].filter((one) => one.getBoundingClientRect().width > 0)[1]";
  const { x, y } = await browser.value<{ x: number; y: number }>(
    `(({ x, y }) => ({ x: x + 10, y: y + 10 }))(${shown}.getBoundingClientRect())`,
  );
  await browser.pointAt(x, y);
  return browser.value(`getComputedStyle(${shown}, '::after').content`);
}

interface Looks {
  readonly scroll: number;
  readonly inner: number;
  readonly figures: number;
  readonly drawn: number;
  readonly foreign: number;
}

const LOOKS = `({
  scroll: document.documentElement.scrollWidth,
  inner: innerWidth,
  figures: document.querySelectorAll('figure').length,
  drawn: [...document.querySelectorAll('.chart, .map')].filter((one) => one.getBoundingClientRect().width > 0).length,
  foreign: document.querySelectorAll('b, img, script').length,
})`;

describe('--report of other commands', () => {
  it('holds no control characters', async () => {
    const odd = path('odd \u001b[31m\u0001\u0085.csv');
    copyFileSync(ratings, odd);
    expect(
      (
        await runCli(
          ...argv`evaluate ${path('model')} ${odd} --device cpu --workers 1 --report ${path('odd.html')}
          --quiet`,
        )
      ).code,
    ).toBe(0);
    const text = readFileSync(path('odd.html'), 'utf8');
    expect(text).toContain('odd \ufffd[31m\ufffd\ufffd.csv');
    expect(text).not.toMatch(/(?![\n\t])\p{Cc}/u);
  });

  it('shows errors and rankings of a model', async () => {
    const errors = await runCli(
      ...argv`evaluate ${path('model')} ${ratings} --device cpu --workers 1 --report
      ${path('errors.html')} --quiet`,
    );
    const ranking = await runCli(
      ...argv`evaluate ${path('model')} ${ratings} --ranking --device cpu --workers 1 --report
      ${path('ranking.html')} --quiet`,
    );
    expect([errors.code, ranking.code]).toEqual([0, 0]);
    expect(readFileSync(path('errors.html'), 'utf8')).toMatch(
      /Calibration[\s\S]*Items by their number of ratings/,
    );
    expect(readFileSync(path('ranking.html'), 'utf8')).toMatch(/Ranking metrics[\s\S]*95 % interval/);
  });
});
