/**
 * Repeats a published experiment, on a published split or on generated ratings, and prints the result next to
 * published ones. Every `factorflow` command that it runs is printed; it downloads nothing.
 * docs/measured/published-tables.md has the names.
 *
 *     npm run reproduce -- NAME [--data DIR] [--search] [--scale X] [--small]
 */
import { FactorFlowError, DataError, Session } from '../../index.ts';
import { describeMachine } from '../../bench/machine.ts';
import { countSplit, describeCounts } from './check-split.ts';
import { measure, type Measured } from './measure.ts';
import { help, readOptions, type ReproduceOptions } from './options.ts';
import { type FoundSplit, readSplit } from './read-split.ts';
import { type MeasuredSet, writeRecord } from './record.ts';
import { publishedRows, resultTable } from './result-table.ts';
import { FailedCommand, type Flags } from './run-command.ts';
import type { RunOptions } from './runs/measure-run.ts';
import { reproduceRun } from './runs/reproduce-run.ts';
import { readSettings, searchSettings, writeSettings } from './search.ts';

process.exitCode = await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === undefined) console.log(help);
    else if ('run' in options) await reproduceOnGenerated(options);
    else await reproduce(options);
    return 0;
  } catch (error) {
    if (!(error instanceof FactorFlowError || error instanceof FailedCommand)) throw error;
    console.error(`reproduce: ${error.message}`);
    return error.exitCode;
  }
}

async function reproduce(options: ReproduceOptions): Promise<void> {
  const { set, workFolder } = options;
  console.log(`${set.title}; ${describeMachine()}`);
  const { split, files } = await found(options);
  const counts = countSplit(split);
  for (const line of describeCounts(counts, options.keepSeen)) console.log(line);
  if (counts.leaked > 0 && !options.allowLeaked) {
    throw new DataError(`${counts.leaked} test pairs are in the training part`, {
      phase: 'check',
      file: files.test,
      advice: 'Give the split as published, or --allow-leaked to measure the other pairs',
    });
  }
  const settings = settingsOf(options, files.train);
  const measured = measure(set, files, {
    workFolder,
    settings,
    seed: options.seed,
    keepSeen: options.keepSeen,
    users: options.small ? 1000 : 'all',
  });
  print(options, measured);
  if (options.record) writeRecord<MeasuredSet>(set.name, { settings, ...measured });
}

async function reproduceOnGenerated(options: RunOptions): Promise<void> {
  console.log(`${options.run.title}; ${describeMachine()}`);
  await reproduceRun(options);
}

async function found({ set, data, workFolder }: ReproduceOptions): Promise<FoundSplit> {
  const session = await Session.create();
  try {
    return await readSplit(session, set, { data, workFolder });
  } finally {
    await session.close();
  }
}

/** Flags of the final training: kept ones, or those that a search finds now. */
function settingsOf(options: ReproduceOptions, train: string): Flags {
  const { set, search, small, seed, rank, trials, workFolder, settings: file } = options;
  if (search) {
    const settings = searchSettings(set, { train, workFolder, seed, trials });
    writeSettings(file, settings);
    const { chosen } = settings;
    console.log(
      `${chosen.trials} settings tried in ${chosen.seconds} s: ${chosen.metric} ` +
        `${chosen.value.toFixed(4)} on the held-out part`,
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

function print({ set, small, settings }: ReproduceOptions, measured: Measured): void {
  const { source, rows } = publishedRows(set.name);
  const own = small ? 'FactorFlow (--small)' : 'FactorFlow';
  console.log(`\n${resultTable([...rows, { name: own, values: measured.metrics }])}\n`);
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
