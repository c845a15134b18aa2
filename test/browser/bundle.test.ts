/** The built entry for pages: its size and its names. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import * as entry from '../../browser/index.ts';

const root = resolve(import.meta.dirname, '../..');
const file = join(root, 'dist/page/index.js');

describe('factorflow/browser', () => {
  it('has these names', () => {
    expect(Object.keys(entry).sort()).toEqual([
      'CapacityError',
      'DataError',
      'DivergedError',
      'FactorFlowError',
      'ItemNames',
      'PageModel',
      'RemoteNames',
      'UsageError',
      'openModel',
      'openNames',
      'trainAls',
      'trainSgd',
      'webGpu',
    ]);
    const declarations = readFileSync(join(root, 'dist/types/browser.d.ts'), 'utf8');
    expect(declarations).not.toMatch(/\bfrom "/);
    const listed = /^export type \{([^}]*)\};/m
      .exec(declarations)?.[1]
      .split(',')
      .map((name) => name.trim());
    expect(listed?.sort()).toEqual([
      'Explanation',
      'Fetch',
      'Id',
      'ItemNameEntry',
      'ItemRow',
      'OpenModelOptions',
      'OpenNamesOptions',
      'PageAlsOptions',
      'PageDeviceName',
      'PageDeviceOption',
      'PageExplainOptions',
      'PageNames',
      'PageRating',
      'PageRequestOptions',
      'PageSgdOptions',
      'PageSimilarOptions',
      'PageTraining',
      'RatedItem',
      'RecommendedItem',
      'SimilarItems',
      'UserRecommendations',
      'WebGpuCode',
    ]);
  });

  it('is one module without imports, of at most 350 kB by gzip, and one for WebGPU', () => {
    const [code, gpu] = [readFileSync(file), readFileSync(join(root, 'dist/page/page-gpu.js'))];
    expect(gzipSync(code).length).toBeLessThan(350_000);
    expect(gzipSync(gpu).length).toBeLessThan(150_000);
    expect(code.toString()).not.toMatch(/(?:^|;)\s*import[\s{*"']/);
    expect(code.toString().match(/\bimport\([^)]*\)/g)).toEqual(['import(`./page-gpu.js`)']);
    expect(`${code}${gpu}`).not.toMatch(/\brequire\(|node:|\beval\(/);
  });

  it('runs in browsers without Symbol.dispose', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-symbols-'));
    const older = join(folder, 'index.mjs');
    // The name Symbol of this module is a function with the older symbols only.
    const symbols = ['for', 'iterator', 'asyncIterator'].map((name) => `${name}: globalThis.Symbol.${name}`);
    const shadow = `const Symbol = Object.assign((name) => globalThis.Symbol(name), { ${symbols.join()} });\n`;
    writeFileSync(older, shadow + readFileSync(file, 'utf8'));
    try {
      const { trainAls } = (await import(pathToFileURL(older).href)) as typeof entry;
      const ratings = [1, 2, 3, 4].map((user) => ({ user, item: user % 3, rating: user }));
      const { model, iterations } = await trainAls(ratings, { rank: 2, maxIter: 2 });
      expect(iterations).toHaveLength(2);
      await model.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
