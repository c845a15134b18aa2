/**
 * Repeats a published experiment, on a published split or on generated ratings, and prints the result next to
 * published ones. Every `factorflow` command that it runs is printed; it downloads nothing.
 * docs/measured/published-tables.md has the names.
 *
 *     npm run reproduce -- NAME [--data DIR] [--search] [--attributes] [--scale X] [--small]
 */
import { join } from 'node:path';
import { describeMachine } from '../../bench/machine.ts';
import { DataError, FactorFlowError, Session } from '../../index.ts';
import { FailedCommand, type Flags, runCommand, runNode, writeRecord } from './command.ts';
import {
  describeLoad,
  describeRatings,
  findDevice,
  generateRatings,
  type MeasuredRun,
  measureVariants,
} from './measure-run.ts';
import { help, readOptions, type RunOptions, type SetOptions } from './options.ts';
import type { PublishedRun } from './runs.ts';
import { readSettings, searchSettings, settingsFile, writeSettings } from './search.ts';
import { publishedRows } from './sets.ts';
import { convertAttributes, countSplit, describeCounts, findSplit, type SplitFiles } from './split.ts';
import {
  coursesOf,
  iterationCells,
  publishedCells,
  resultCells,
  summaryCells,
  techniqueCells,
  textTable,
} from './tables.ts';

/** A result on a published split. */
export interface MeasuredSet {
  readonly settings: Flags;
  readonly metrics: Readonly<Record<string, number>>;
  /** Users over whom means are taken. */
  readonly users: number;
  /** Seconds of both commands, from their start to their end. */
  readonly trainSeconds: number;
  readonly evaluateSeconds: number;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === undefined) console.log(help);
    else if ('run' in options) await reproduceRun(options);
    else await reproduceSet(options);
    return 0;
  } catch (error) {
    if (!(error instanceof FactorFlowError || error instanceof FailedCommand)) throw error;
    console.error(`reproduce: ${error.message}`);
    return error.exitCode;
  }
}

/** Trains and evaluates on a published split. */
async function reproduceSet(options: SetOptions): Promise<void> {
  const { set } = options;
  console.log(`${set.title}; ${describeMachine()}`);
  const files = await checkedSplit(options);
  const measured = measure(options, files, settingsOf(options, files.train));
  const withAttributes = options.attributes ? await measureAttributes(options, files) : undefined;
  printSet(options, measured, withAttributes);
  if (!options.record) return;
  writeRecord<MeasuredSet>(set.name, measured);
  if (withAttributes !== undefined) writeRecord<MeasuredSet>(attributesName(set.name), withAttributes);
}

/** Name of the settings and of the result with attributes of the items. */
export function attributesName(set: string): string {
  return `${set}-attributes`;
}

async function measureAttributes(options: SetOptions, files: SplitFiles): Promise<MeasuredSet> {
  const { set } = options;
  await using session = await Session.create({ device: 'cpu' });
  const converted = await convertAttributes(session, set.attributes!, options);
  const settings = settingsFile(attributesName(set.name));
  const flags = settingsOf({ ...options, search: false, settings }, files.train);
  return measure(options, files, {
    'item-attributes': converted,
    'item-attributes-cols': 'words:words',
    ...flags,
  });
}

/** The split's files. Throws DataError if test pairs are in the training part and must not be. */
async function checkedSplit(options: SetOptions): Promise<SplitFiles> {
  await using session = await Session.create();
  const files = await findSplit(session, options.set, options);
  const read = (file: string) => session.read.parquet(file);
  const candidates = files.candidates === undefined ? undefined : read(files.candidates);
  const counts = await countSplit(read(files.train), read(files.test), candidates);
  for (const line of describeCounts(counts, options.keepSeen)) console.log(line);
  if (counts.leaked === 0 || options.allowLeaked) return files;
  throw new DataError(`${counts.leaked} test pairs are in the training part`, {
    phase: 'check',
    file: files.test,
    advice: 'Give the split as published, or --allow-leaked to measure the other pairs',
  });
}

/** Flags of the final training: kept ones, or those that a search finds now. */
function settingsOf(options: SetOptions, train: string): Flags {
  const { set, search, small, rank, settings: file } = options;
  if (search) {
    const settings = searchSettings(set, { ...options, train });
    writeSettings(file, settings);
    const { trials, seconds, metric, value } = settings.chosen;
    console.log(
      `${trials} settings tried in ${seconds} s: ${metric} ${value.toFixed(4)} on the held-out part`,
    );
    console.log(`the best are kept in ${file}`);
  }
  const kept = readSettings(file);
  if (kept === undefined && !small) {
    throw new DataError(`there are no settings for ${set.name}`, {
      phase: 'settings',
      file,
      advice: 'Choose some by --search',
    });
  }
  return {
    ...kept?.flags,
    ...(rank !== undefined && { rank }),
    ...(small && { rank: 8, 'max-iter': 3 }),
  };
}

/** Trains on the whole of train, and measures test once. Unknown users and items count as misses. */
function measure(options: SetOptions, files: SplitFiles, settings: Flags): MeasuredSet {
  const { set, workFolder, seed, keepSeen, small } = options;
  const { train, test, candidates } = files;
  const model = join(workFolder, 'model');
  const common = { force: true, quiet: true } as const;
  const training = { 'model-dir': model, implicit: true, ...settings, seed, ...common } as const;
  const trained = runCommand(['train', train], training);
  const { output, seconds } = runCommand<Pick<MeasuredSet, 'metrics' | 'users'>>(['evaluate', model, test], {
    ranking: true,
    ...(candidates !== undefined && { candidates }),
    ...(!(candidates !== undefined && keepSeen) && { exclude: train }),
    metrics: set.metrics.join(','),
    k: set.k.join(','),
    'cold-pairs': 'miss',
    'rank-users': small ? 1000 : 'all',
    resamples: 0,
    quiet: true,
  });
  const { metrics, users } = output;
  return { settings, metrics, users, trainSeconds: trained.seconds, evaluateSeconds: seconds };
}

function printSet(
  { set, small, settings }: SetOptions,
  measured: MeasuredSet,
  withAttributes: MeasuredSet | undefined,
): void {
  const { source, rows } = publishedRows(set.name);
  const own = small ? 'FactorFlow (--small)' : 'FactorFlow';
  const measuredRows = [
    { name: own, values: measured.metrics },
    ...(withAttributes ? [{ name: `${own}, with attributes`, values: withAttributes.metrics }] : []),
  ];
  console.log(`\n${textTable(resultCells([...rows, ...measuredRows]))}\n`);
  console.log(`published rows: ${source}`);
  const [training, evaluating] = [measured.trainSeconds, measured.evaluateSeconds].map((s) => s.toFixed(1));
  console.log(
    `${training} s training, ${evaluating} s evaluating ${measured.users} users; test was measured once`,
  );
  const chosen = readSettings(settings)?.chosen;
  if (chosen !== undefined && !small)
    console.log(
      `settings of ${chosen.date}: ${chosen.trials} tried in ${chosen.seconds} s, by ${chosen.metric} ` +
        `on a part of train`,
    );
}

/** Generates ratings, trains by each variant, and prints the courses next to published figures. */
async function reproduceRun(options: RunOptions): Promise<void> {
  const { run } = options;
  console.log(`${run.title}; ${describeMachine()}`);
  const device = await findDevice(options.device);
  console.log(`device ${device.kind}: ${device.description}`);
  const ratings = generateRatings(options, device);
  console.log(describeRatings(run.preset, ratings));
  const measured = measureVariants(options, device, ratings);
  printRun(run, measured);
  if (device.kind === 'gpu' && !device.software && run.bench !== undefined) {
    const [name, ...flags] = run.bench;
    const words = ['bench/bench.ts', name, ratings.folder, ...flags];
    console.log(`\n$ node ${words.join(' ')}`);
    runNode('bench', words, 'inherit');
  }
  if (options.record) writeRecord(run.name, measured);
}

function printRun(run: PublishedRun, measured: MeasuredRun): void {
  console.log(`\n${run.about}\n`);
  console.log(`${describeLoad(measured)}\n`);
  console.log(textTable(iterationCells(measured)));
  console.log(`\n${textTable(summaryCells(coursesOf(measured)))}`);
  console.log(`\n${textTable(publishedCells(run))}`);
  if (run.techniques !== undefined) console.log(`\n${textTable(techniqueCells(run, measured))}`);
}
