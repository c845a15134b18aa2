import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { FailedCommand } from '../run-command.ts';
import { writeRecord } from '../record.ts';
import { textTable } from '../result-table.ts';
import {
  describeLoad,
  findDevice,
  type GeneratedRatings,
  generateRatings,
  type MeasuredRun,
  measureVariants,
  type RunOptions,
} from './measure-run.ts';
import { coursesOf, iterationCells, publishedCells, summaryCells, techniqueCells } from './run-cells.ts';
import { UsageError } from '../../../index.ts';
import { type GivenFlags, wholeFlag } from '../given-flags.ts';
import type { PublishedRun } from './runs.ts';

/** Options of an experiment that generates its ratings. */
export function runOptions(run: PublishedRun, flags: GivenFlags): RunOptions {
  return {
    run,
    workFolder: flags.work ?? `build/reproduce/${run.name}`,
    device: deviceOf(flags.device),
    scale: scaleOf(flags.scale),
    small: flags.small ?? false,
    seed: wholeFlag('seed', flags.seed) ?? 1,
    rank: wholeFlag('rank', flags.rank),
    record: flags.record ?? false,
  };
}

function deviceOf(given = 'auto'): RunOptions['device'] {
  if (given !== 'auto' && given !== 'cpu' && given !== 'gpu')
    throw new UsageError(`--device takes auto, cpu or gpu, not "${given}"`);
  return given;
}

function scaleOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const scale = Number(given);
  if (!(scale > 0 && scale <= 1) || given.trim() === '')
    throw new UsageError(`--scale takes a number above 0 and at most 1, not "${given}"`);
  return scale;
}

/** Generates ratings, trains by each variant, and prints the courses next to published figures. */
export async function reproduceRun(options: RunOptions): Promise<void> {
  const { run } = options;
  const device = await findDevice(options.device);
  console.log(`device ${device.kind}: ${device.description}`);
  const ratings = generateRatings(options, device);
  console.log(describeRatings(run.preset, ratings));
  const measured = measureVariants(options, device, ratings);
  print(options, measured);
  if (device.kind === 'gpu' && !device.software && run.bench !== undefined)
    runBench(run.bench, ratings.folder);
  if (options.record) writeRecord(run.name, measured);
}

/** The generated ratings, in a sentence that says what they are not. */
export function describeRatings(preset: string, ratings: Omit<GeneratedRatings, 'folder'>): string {
  const count = (value: number) => value.toLocaleString('en-US');
  return (
    `generated in the shape of ${preset}, scale ${ratings.scale} (${ratings.scaleReason}): ` +
    `${count(ratings.users)} users, ${count(ratings.items)} items, ${count(ratings.ratings)} ratings and ` +
    `${count(ratings.testRatings)} test ratings; the factors that they are made of have test RMSE ` +
    `${ratings.bestTestRmse.toFixed(4)}`
  );
}

function print({ run }: RunOptions, measured: MeasuredRun): void {
  const { techniques } = run;
  console.log(`\n${run.about}\n`);
  console.log(`${describeLoad(measured)}\n`);
  console.log(textTable(iterationCells(measured)));
  console.log(`\n${textTable(summaryCells(coursesOf(measured)))}`);
  console.log(`\n${textTable(publishedCells(run))}`);
  if (techniques !== undefined) console.log(`\n${textTable(techniqueCells(run, measured))}`);
}

/** A case of bench/, which prints its table itself. */
function runBench([name, ...flags]: readonly string[], folder: string): void {
  const program = 'bench/bench.ts';
  const words = [name, folder, ...flags];
  console.log(`\n$ node ${[program, ...words].join(' ')}`);
  const { status, error } = spawnSync(
    process.execPath,
    [resolve(import.meta.dirname, '../../..', program), ...words],
    {
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  if (error !== undefined) throw error;
  if (status !== 0) throw new FailedCommand([program], status ?? 1);
}
