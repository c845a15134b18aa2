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
 *
 * `--oracle` is short for `--only oracle`: models, metrics and lists against float64 formulas in Python.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { randomOf } from '../../test/support/damage/mutations.ts';
import { aborts } from './aborts.ts';
import type { Attack, MakeAttack } from './attack.ts';
import { pipelines, shapesOnCpu, shapesOnGpu, smallFits } from './children.ts';
import { closing, fullPipes, shortWrites } from './outputs.ts';
import { damagedFiles, swappedFiles } from './damaged-files.ts';
import { faults } from './faults.ts';
import { fullDisk, spaces } from './full-disk.ts';
import { kills, signalled } from './kills.ts';
import { lies } from './lies.ts';
import { oracle, pythonThreads } from './oracle.ts';
import { servedClients, serving } from './serving.ts';

interface Running {
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

/** The attacks with their shares of the time: a kill takes longest, and damaged files are many. */
const makers: readonly (readonly [MakeAttack, number])[] = [
  [kills, 4],
  [signalled, 1],
  [damagedFiles, 2],
  [swappedFiles, 0.5],
  [aborts, 1],
  [fullDisk, 0.5],
  [faults, 2],
  [shortWrites, 0.5],
  [fullPipes, 0.5],
  [lies, 1],
  [shapesOnCpu, 1],
  [shapesOnGpu, 1],
  [smallFits, 0.5],
  [pipelines, 0.5],
  [oracle, 1],
  [pythonThreads, 0.5],
  [spaces, 1],
  [closing, 0.5],
  [serving, 0.5],
  [servedClients, 0.5],
];
const folder = mkdtempSync(join(tmpdir(), 'factorflow-torture-'));
const finds: string[] = [];
const all: Running[] = [];
try {
  for (const [index, [make, share]] of makers.entries()) {
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
    if (only !== undefined && !only.includes(attack.name)) continue;
    const reason = await attack.prepare?.();
    if (reason === undefined) all.push({ attack, counts, share, rounds: 0, seconds: 0 });
    else console.log(`${attack.name}: left out, ${reason}`);
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
for (const { attack, counts, rounds, seconds } of all) {
  const outcomes = [...counts]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([outcome, number]) => `${outcome} ${number}`);
  console.log(`${attack.name.padEnd(18)} ${rounds} rounds, ${seconds.toFixed(0)} s: ${outcomes.join(', ')}`);
}
console.log(
  all.length === 0 ? 'nothing was run' : finds.length === 0 ? 'nothing found' : `${finds.length} found`,
);
process.exitCode = finds.length === 0 ? 0 : 1;
