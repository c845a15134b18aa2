/**
 * Kills training runs at random moments after their first checkpoint, resumes each, and compares its model
 * with the model of an undisturbed run.
 *
 *     node bench/kills.ts [kills for each command line = 50] [ratings = examples/data/movietweetings-100k/ratings.parquet]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Kill, killedRuns, spillingRun } from '../test/support/damage/killed-runs.ts';
import { describeMachine } from './machine.ts';

const kills = Number(process.argv[2] ?? 50);
const ratings = process.argv[3] ?? 'examples/data/movietweetings-100k/ratings.parquet';
const INTERVAL = 2;

const line =
  (...flags: string[]) =>
  () => ['train', ratings, '--device', 'cpu', '--rank', '32', '--max-iter', '40', ...flags];
const runs: Readonly<Record<string, (folder: string) => string[]>> = {
  'ALS, conjugate gradients, biases': line('--solver', 'cg'),
  'SGD, wavefront, AdaGrad': line(
    '--algorithm',
    'sgd',
    '--schedule',
    'wavefront',
    '--rate',
    'adagrad',
    '--test-fraction',
    '0.1',
    '--early-stop',
    '30',
  ),
  'ALS, ratings in files': spillingRun,
};

console.log(describeMachine());
let seed = 0;
for (const [name, train] of Object.entries(runs)) {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-kills-'));
  try {
    const onKill = ({ told, resumedFrom, differing, left }: Kill) =>
      console.log(
        `${name}: killed after ${told}, resumed from ${resumedFrom}; files that differ ` +
          `${differing.length}, left ${left.length}`,
      );
    const made = await killedRuns({
      train: train(folder),
      interval: INTERVAL,
      kills,
      seed: seed++,
      folder,
      onKill,
    });
    const of = (counts: (kill: Kill) => boolean) => made.filter(counts).length;
    const lost = made.map(({ told, resumedFrom }) => told - resumedFrom);
    console.log(
      `${name}: ${made.length} kills, ${of(({ writing }) => writing)} while something was written; ` +
        `models equal bit for bit ${of(({ differing }) => differing.length === 0)}, nothing left ` +
        `${of(({ left }) => left.length === 0)}; iterations run again ${Math.min(...lost)} to ` +
        `${Math.max(...lost)}`,
    );
    if (made.some(({ differing, left }) => differing.length + left.length > 0)) process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
