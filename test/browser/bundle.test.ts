/** The built entry for pages: its size, its names, and other bundlers that take it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { afterAll, describe, expect, it } from 'vitest';
import * as entry from '../../browser/index.ts';
import { bundlePage } from '../../scripts/bundle-page.ts';

const root = resolve(import.meta.dirname, '../..');
const file = join(root, 'dist/page/index.js');
const folder = mkdtempSync(join(tmpdir(), 'factorflow-bundle-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('factorflow/browser', () => {
  it('has these names', () => {
    expect(Object.keys(entry).sort()).toEqual([
      'CapacityError',
      'DataError',
      'FactorFlowError',
      'ItemNames',
      'PageModel',
      'UsageError',
      'openModel',
      'trainAls',
    ]);
    const declarations = readFileSync(join(root, 'dist/types/browser.d.ts'), 'utf8');
    expect(declarations).not.toMatch(/\bfrom "/);
    const listed = /^export type \{([^}]*)\};/m
      .exec(declarations)?.[1]
      .split(',')
      .map((name) => name.trim());
    expect(listed?.sort()).toEqual([
      'ExplainOptions',
      'Explanation',
      'Fetch',
      'Id',
      'ItemNameEntry',
      'OpenModelOptions',
      'PageAlsOptions',
      'PageRating',
      'PageRequestOptions',
      'PageTraining',
      'RatedItem',
      'RecommendedItem',
      'SimilarRows',
      'UserRecommendations',
    ]);
  });

  it('is one module of at most 350 kB by gzip, without imports', () => {
    const code = readFileSync(file);
    expect(gzipSync(code).length).toBeLessThan(350_000);
    expect(code.toString()).not.toMatch(/(?:^|;)\s*import[\s{*"']|\bimport\(|\brequire\(|node:|eval\(/);
  });

  it('gives the part that a program uses', async () => {
    const program = join(folder, 'names.js');
    writeFileSync(
      program,
      `import { ItemNames } from ${JSON.stringify(file)};\nconsole.log(new ItemNames([[1, 'M']]).get(1));\n`,
    );
    expect((await bundlePage(program)).length).toBeLessThan(40_000);
  });

  it('is built by Vite', async () => {
    writeFileSync(join(folder, 'index.html'), '<script type="module" src="./main.js"></script>');
    writeFileSync(
      join(folder, 'main.js'),
      `import { openModel } from ${JSON.stringify(file)};\nopenModel('model/');\n`,
    );
    const out = await build({ root: folder, logLevel: 'silent', build: { write: false } });
    const { output } = Array.isArray(out) ? out[0] : (out as Exclude<typeof out, unknown[]> & { output: [] });
    const chunks = output.filter(({ type }: { type: string }) => type === 'chunk');
    expect(chunks).toHaveLength(1);
  });
});
