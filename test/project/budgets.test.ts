/**
 * Lines and files that each folder may have. A feature that does not fit is a sign that a mechanism should change first;
 * raising a budget is a commit of its own that says why. `node scripts/count/lines.ts` prints the counts.
 */
import { expect, it } from 'vitest';
import { countFolders } from '../../scripts/count/lines.ts';

const budgets: Readonly<Record<string, readonly [lines: number, files: number]>> = {
  api: [17_300, 188],
  bench: [9_000, 82],
  browser: [4_750, 49],
  cli: [12_750, 154],
  connectors: [22_100, 194],
  cpu: [14_900, 147],
  engine: [16_700, 171],
  examples: [1_100, 19],
  gpu: [27_500, 343],
  operators: [39_500, 355],
  python: [3_550, 26],
  scripts: [9_200, 111],
  site: [150, 1],
  spark: [9_500, 102],
  synthetic: [2_600, 30],
  '.': [180, 4],
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
