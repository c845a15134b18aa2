/**
 * Loading and training at MovieLens-20M's size: 138,493 users, 27,278 items, 18 M training and 2 M test
 * ratings. Each setting runs in its own process; the figure is the median time of its iterations in seconds,
 * without evaluation.
 *
 *     npm run bench [-- FOLDER] [--json]
 *
 * FOLDER: as written by `factorflow generate --preset movielens20m`; generated if missing. `--json` prints a
 * result in the form of bench/results/ instead of the table.
 *
 * The reference figures are from the Python library implicit 0.7 (Cython and BLAS) on a similar machine and
 * data set; its CG takes 3 steps. They are printed for comparison and are not measured here.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Cell } from '../scripts/docs/results.ts';
import { describeMachine } from './machine.ts';
import { newResult } from './new-result.ts';

interface TrainResult {
  readonly ratings: number;
  readonly iterations: readonly { readonly seconds: number; readonly testRmse: number }[];
  readonly seconds: { readonly load: number };
  readonly peakRssBytes: number;
}

const root = resolve(import.meta.dirname, '..');
const cli = join(root, 'dist/programs/cli/main.js');
const { values, positionals } = parseArgs({ options: { json: { type: 'boolean' } }, allowPositionals: true });
const folder = positionals[0] ?? join(root, 'build/bench/movielens20m');
const print = values.json ? () => {} : console.log;
const rows: Cell[][] = [];
const settings = [
  { rank: 64, solver: 'cholesky', implicit: 16.2 },
  { rank: 64, solver: 'cg', steps: 6 },
  { rank: 64, solver: 'cg', steps: 3, implicit: 3.36 },
  { rank: 128, solver: 'cg', steps: 6, implicit: 4.99 },
] as const;

if (!existsSync(folder))
  factorflow(['generate', '--preset', 'movielens20m', '--seed', '1', '--output', folder]);
print(`${describeMachine()}, 2 workers\n`);
print(
  'rank  solver     s/iteration  (min-max)    implicit  load M ratings/s  peak RSS MB  test RMSE after 4',
);
for (const setting of settings) {
  const model = join(root, 'build/bench/model');
  const steps = 'steps' in setting ? ['--cg-steps', String(setting.steps)] : [];
  const options = [
    '--rank',
    String(setting.rank),
    '--solver',
    setting.solver,
    ...steps,
    '--reg-param',
    '0.05',
    '--max-iter',
    '4',
    '--workers',
    '2',
    '--seed',
    '1',
  ];
  const result = JSON.parse(
    factorflow([
      'train',
      join(folder, 'train'),
      '--test',
      join(folder, 'test'),
      '--model-dir',
      model,
      '--force',
      '--json',
      '--quiet',
      ...options,
    ]),
  ) as TrainResult;
  const seconds = result.iterations.map((iteration) => iteration.seconds).sort((left, right) => left - right);
  const median = (seconds[1] + seconds[2]) / 2;
  const name = `${setting.solver}${'steps' in setting ? `(${setting.steps})` : ''}`;
  const reference = 'implicit' in setting ? `${(setting.implicit / median).toFixed(1)} x` : '-';
  const testPairs = 2e6;
  const speed = (result.ratings + testPairs) / result.seconds.load / 1e6;
  const { testRmse } = result.iterations[3];
  rows.push([setting.rank, name, seconds, speed, result.peakRssBytes / 1e6, testRmse]);
  print(
    [
      String(setting.rank).padEnd(5),
      name.padEnd(10),
      median.toFixed(2).padEnd(12),
      `${seconds[0].toFixed(2)}-${seconds[3].toFixed(2)}`.padEnd(12),
      reference.padEnd(9),
      speed.toFixed(1).padEnd(17),
      (result.peakRssBytes / 1e6).toFixed(0).padEnd(12),
      testRmse.toFixed(4),
    ].join(' '),
  );
}

if (values.json)
  console.log(
    newResult({
      id: 'als-cpu',
      title: 'ALS on two cores, explicit ratings',
      data: 'factorflow generate --preset movielens20m --seed 1 --output FOLDER; λ = 0.05, 2 workers',
      commands: ['npm run bench -- FOLDER'],
      columns: [
        { name: 'rank' },
        { name: 'solver' },
        { name: 'time', unit: 's an iteration' },
        { name: 'loading', unit: 'M ratings/s' },
        { name: 'peak', unit: 'MB' },
        { name: 'test RMSE after 4' },
      ],
      rows,
    }),
  );

function factorflow(args: readonly string[]): string {
  return execFileSync(process.execPath, [cli, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
  });
}
