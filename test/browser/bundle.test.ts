/** The built entry for pages: its size and its names. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
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
});
