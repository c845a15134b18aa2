/**
 * Lines and files that each folder may have, with room for a small kernel or operator. If a feature does not fit,
 * first look for a mechanism that should change; raising a budget is a commit of its own that says why.
 * `node scripts/count/lines.ts` prints the counts.
 */
import { expect, it } from 'vitest';
import { countFolders } from '../../scripts/count/lines.ts';

const budgets: Readonly<Record<string, readonly [lines: number, files: number]>> = {
  api: [16_960, 120],
  bench: [4_020, 44],
  browser: [4_640, 37],
  cli: [11_800, 94],
  connectors: [21_340, 109],
  cpu: [12_580, 83],
  engine: [16_580, 116],
  examples: [1_100, 19],
  gpu: [22_600, 158],
  operators: [37_240, 154],
  python: [2_420, 20],
  scripts: [7_120, 65],
  site: [160, 1],
  spark: [5_300, 51],
  synthetic: [2_240, 17],
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
