import { UsageError } from '../../index.ts';
import { type GivenFlags, parseFlags, refuseOthers, wholeFlag } from './given-flags.ts';
import type { RunOptions } from './runs/measure-run.ts';
import { runOptions } from './runs/reproduce-run.ts';
import { runs } from './runs/runs.ts';
import { type PublishedSet, sets } from './sets.ts';
import { settingsFile } from './search.ts';

export interface ReproduceOptions {
  readonly set: PublishedSet;
  readonly data: string;
  /** Folder of converted files, parts and models. */
  readonly workFolder: string;
  readonly search: boolean;
  readonly small: boolean;
  readonly allowLeaked: boolean;
  /** Candidates that are train pairs are ranked too. */
  readonly keepSeen: boolean;
  readonly seed: number;
  readonly rank: number | undefined;
  /** Trials of each random search, if not the set's own number. */
  readonly trials: number | undefined;
  /** File of the settings. */
  readonly settings: string;
  /** Keeps the result for the page of published tables. */
  readonly record: boolean;
}

const setNames = sets.map(({ name }) => name);
const runNames = runs.map(({ name }) => name);

export const help = `npm run reproduce -- NAME [--data DIR]

Repeats a published experiment, and prints the result next to published figures.

Published splits, which are trained on and evaluated: ${setNames.join(', ')}

  --data DIR        folder with the set's files, or with folders of sets [default: FACTORFLOW_DATA]
  --search          choose the settings anew, on a part of the training pairs, and keep them
  --trials N        trials of each random search [default: by the set]
  --settings FILE   settings that are used, or kept [default: scripts/reproduce/settings/NAME.json]
  --seen-candidates keep | leave-out: candidates that are training pairs [default: leave-out]
  --allow-leaked    measure though test pairs are in the training part; they are not ranked

Times on ratings that are generated: ${runNames.join(', ')}

  --scale X         part of the users and ratings [default: 1 on a GPU, 0.02 on a CPU]
  --device NAME     auto, cpu or gpu [default: auto]

Both:

  --small           rank 8, 3 iterations, and 1,000 users or scale 0.002: a check that takes seconds
  --rank N          another rank
  --seed N          seed of the factors and of what is held out or generated [default: 1]
  --record          keep the result in scripts/reproduce/results/NAME.json, for the page that
                    npm run docs makes of them
  --work DIR        folder for converted files and models [default: build/reproduce/NAME]
`;

/** The command's options, or undefined where help was asked for. */
export function readOptions(args: readonly string[]): ReproduceOptions | RunOptions | undefined {
  const { values, positionals } = parseFlags(args);
  if (values.help === true) return undefined;
  const [name] = positionals;
  const set = positionals.length === 1 ? sets.find((set) => set.name === name) : undefined;
  const run = positionals.length === 1 ? runs.find((run) => run.name === name) : undefined;
  if (set !== undefined) {
    refuseOthers(name, 'set', values);
    return setOptions(set, values);
  }
  if (run !== undefined) {
    refuseOthers(name, 'run', values);
    return runOptions(run, values);
  }
  const given = positionals.length === 0 ? 'no name of a set' : `no set "${positionals.join(' ')}"`;
  throw new UsageError(`${given}: choose one of ${[...setNames, ...runNames].join(', ')}`);
}

function setOptions(set: PublishedSet, values: GivenFlags): ReproduceOptions {
  const data = values.data ?? process.env.FACTORFLOW_DATA;
  if (data === undefined) throw new UsageError("give the folder of the set's files by --data");
  return {
    set,
    data,
    workFolder: values.work ?? `build/reproduce/${set.name}`,
    search: values.search ?? false,
    small: values.small ?? false,
    allowLeaked: values['allow-leaked'] ?? false,
    keepSeen: keepsSeen(values['seen-candidates']),
    seed: wholeFlag('seed', values.seed) ?? 1,
    rank: wholeFlag('rank', values.rank),
    trials: wholeFlag('trials', values.trials),
    settings: values.settings ?? settingsFile(set.name),
    record: values.record ?? false,
  };
}

function keepsSeen(given = 'leave-out'): boolean {
  if (given !== 'keep' && given !== 'leave-out')
    throw new UsageError(`--seen-candidates takes keep or leave-out, not "${given}"`);
  return given === 'keep';
}
