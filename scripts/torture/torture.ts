/**
 * Attacks the built program and its library for some minutes, and compares what survives with what it must
 * be: kills, signals, full disks, failing, short and slow calls of the file system, stdout into full disks and
 * full pipes, web servers with false answers, damaged files, files of two models mixed, aborted calls, closed
 * sessions, `serve` that ends among requests and reloads, and its slow clients, readers and writers in
 * separate process spaces, thousands of small fits, a thousand mixed pipelines on columns with odd names,
 * ratings of odd shapes, float64 formulas in Python, and threads of Python on one model.
 * Ends only processes of its own and writes only to a temporary folder of its own.
 *
 *     npm run torture -- [--minutes 10] [--seed 1] [--only kills,signals] [--oracle]
 *     npm run torture -- --only 'quick ends'     (on an idle machine: how soon commands end after a signal)
 *
 * `--oracle` is short for `--only oracle`: models, metrics and lists against float64 formulas in Python.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { randomOf } from '../../test/support/damage/mutations.ts';
import type { Attack, MakeAttack } from './attack.ts';
import { aborts, closing } from './attacks/calls.ts';
import { damagedFiles, swappedFiles } from './attacks/damaged-files.ts';
import { lies } from './attacks/lies.ts';
import { fullDisk, fullPipes, quickEnds, shortWrites } from './attacks/outputs.ts';
import { faults, kills, signalled, spaces } from './attacks/replaced.ts';
import { oracle, pipelines, pythonThreads, shapesOnCpu, shapesOnGpu, smallFits } from './attacks/scripts.ts';
import { servedClients, serving } from './attacks/serving.ts';

interface Running {
  readonly name: string;
  readonly attack: Attack;
  readonly counts: Map<string, number>;
  readonly share: number;
  rounds: number;
  seconds: number;
}

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    oracle: { type: 'boolean' },
  },
});
const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
if (!(minutes > 0) || !Number.isInteger(seed))
  throw new Error('--minutes takes a number above 0, --seed a whole number');
const only = values.oracle ? ['oracle'] : values.only?.split(',');
const end = performance.now() + 60_000 * minutes;

/**
 * The attacks by name, with their shares of the time: a kill takes longest, and damaged files are many. One with
 * no share is made only where `--only` names it, on an idle machine.
 */
const attacks: readonly (readonly [name: string, make: MakeAttack, share: number])[] = [
  ['kills', kills, 4],
  ['signals', signalled, 1],
  ['damaged files', damagedFiles, 2],
  ['swapped files', swappedFiles, 0.5],
  ['aborts', aborts, 1],
  ['full disks', fullDisk, 0.5],
  ['failing calls', faults, 2],
  ['short writes', shortWrites, 0.5],
  ['full pipes', fullPipes, 0.5],
  ['lying server', lies, 1],
  ['odd shapes on cpu', shapesOnCpu, 1],
  ['odd shapes on gpu', shapesOnGpu, 1],
  ['small fits', smallFits, 0.5],
  ['pipelines', pipelines, 0.5],
  ['oracle', oracle, 1],
  ['Python threads', pythonThreads, 0.5],
  ['process spaces', spaces, 1],
  ['closing', closing, 0.5],
  ['serve', serving, 0.5],
  ['serve clients', servedClients, 0.5],
  ['quick ends', quickEnds, 0],
];
const folder = mkdtempSync(join(tmpdir(), 'factorflow-torture-'));
const finds: string[] = [];
const all: Running[] = [];
try {
  for (const [index, [name, make, share]] of attacks.entries()) {
    if (only === undefined ? share === 0 : !only.includes(name)) continue;
    const own = join(folder, `${index}`);
    mkdirSync(own);
    const counts = new Map<string, number>();
    const find = (text: string) => {
      finds.push(text);
      console.error(`found: ${text}`);
    };
    const attack = make({
      folder: own,
      random: randomOf(100 * seed + index),
      count: (outcome, number = 1) => void counts.set(outcome, (counts.get(outcome) ?? 0) + number),
      find,
    });
    const reason = await attack.prepare?.();
    if (reason === undefined) all.push({ name, attack, counts, share: share || 1, rounds: 0, seconds: 0 });
    else console.log(`${name}: left out, ${reason}`);
  }
  // The attack that has had the least of its share comes next; each has one round, however slow the machine.
  for (;;) {
    const next = all.toSorted((a, b) => a.seconds / a.share - b.seconds / b.share).at(0);
    if (next === undefined || (performance.now() > end && next.rounds > 0)) break;
    const started = performance.now();
    await next.attack.round();
    next.seconds += (performance.now() - started) / 1000;
    next.rounds++;
  }
} finally {
  for (const { attack } of all) await attack.close?.();
  rmSync(folder, { recursive: true, force: true });
}
const machine = `${cpus()[0]?.model.trim() ?? process.arch}, ${availableParallelism()} cores, node ${process.version}`;
console.log(`\n${minutes} minutes, seed ${seed}, ${new Date().toISOString().slice(0, 10)}, ${machine}`);
for (const { name, counts, rounds, seconds } of all) {
  const outcomes = [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([outcome, number]) => `${outcome} ${number}`);
  console.log(`${name.padEnd(18)} ${rounds} rounds, ${seconds.toFixed(0)} s: ${outcomes.join(', ')}`);
}
console.log(
  all.length === 0 ? 'nothing was run' : finds.length === 0 ? 'nothing found' : `${finds.length} found`,
);
process.exitCode = finds.length === 0 ? 0 : 1;
