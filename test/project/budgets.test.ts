/**
 * Lines and files that each folder may have, with room for a small kernel or operator. If a feature does not fit,
 * first look for a mechanism that should change; raising a budget is a commit of its own that says why.
 * `node scripts/count/lines.ts` prints the counts.
 */
import { expect, it } from 'vitest';
import { countFolders } from '../../scripts/count/lines.ts';

const budgets: Readonly<Record<string, readonly [lines: number, files: number]>> = {
  api: [19_700, 132],
  bench: [4_060, 44],
  browser: [4_700, 39],
  cli: [12_700, 98],
  connectors: [22_250, 113],
  cpu: [13_300, 87],
  engine: [18_400, 123],
  examples: [1_180, 21],
  gpu: [22_880, 161],
  operators: [42_700, 178],
  python: [2_640, 21],
  scripts: [6_800, 65],
  site: [160, 1],
  spark: [5_610, 55],
  synthetic: [2_230, 17],
  '.': [200, 4],
};

it('no folder has more lines or files than its budget', () => {
  const counts = Object.fromEntries(countFolders());
  delete counts.test;
  expect(Object.keys(counts).sort()).toEqual(Object.keys(budgets).sort());
  const above = Object.entries(counts).filter(([folder, { lines, files }]) => {
    const [mostLines, mostFiles] = budgets[folder]!;
    return lines > mostLines || files > mostFiles;
  });
  expect(above).toEqual([]);
});
