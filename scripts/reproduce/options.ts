import { parseArgs } from 'node:util';
import { UsageError } from '../../index.ts';
import { type PublishedSet, sets } from './sets.ts';
import { settingsFile } from './settings.ts';

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

export const help = `npm run reproduce -- NAME --data DIR

Trains and evaluates on a published split, and prints the result next to published ones.

NAME: ${sets.map(({ name }) => name).join(', ')}

  --data DIR        folder with the set's files, or with folders of sets [default: FACTORFLOW_DATA]
  --search          choose the settings anew, on a part of the training pairs, and keep them
  --trials N        trials of each random search [default: by the set]
  --settings FILE   settings that are used, or kept [default: scripts/reproduce/settings/NAME.json]
  --record          keep the result in scripts/reproduce/results/NAME.json, for the page that
                    npm run docs makes of them
  --small           rank 8, 3 iterations, 1,000 users: a check that takes seconds
  --rank N          another rank than that of the settings
  --seed N          seed of the factors and of what is held out [default: 1]
  --seen-candidates keep | leave-out: candidates that are training pairs [default: leave-out]
  --allow-leaked    measure though test pairs are in the training part; they are not ranked
  --work DIR        folder for converted files and models [default: build/reproduce/NAME]
`;

/** The command's options, or undefined where help was asked for. */
export function readOptions(args: readonly string[]): ReproduceOptions | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const set = sets.find(({ name }) => name === positionals[0]);
  if (set === undefined || positionals.length > 1) {
    const given = positionals.length === 0 ? 'no name of a set' : `no set "${positionals.join(' ')}"`;
    throw new UsageError(`${given}: choose one of ${sets.map(({ name }) => name).join(', ')}`);
  }
  const data = values.data ?? process.env.FACTORFLOW_DATA;
  if (data === undefined) throw new UsageError("give the folder of the set's files by --data");
  return {
    set,
    data,
    workFolder: values.work ?? `build/reproduce/${set.name}`,
    search: values.search,
    small: values.small,
    allowLeaked: values['allow-leaked'],
    keepSeen: keepsSeen(values['seen-candidates']),
    seed: whole('seed', values.seed) ?? 1,
    rank: whole('rank', values.rank),
    trials: whole('trials', values.trials),
    settings: values.settings ?? settingsFile(set.name),
    record: values.record,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        data: { type: 'string' },
        work: { type: 'string' },
        search: { type: 'boolean', default: false },
        small: { type: 'boolean', default: false },
        'allow-leaked': { type: 'boolean', default: false },
        'seen-candidates': { type: 'string', default: 'leave-out' },
        seed: { type: 'string' },
        rank: { type: 'string' },
        trials: { type: 'string' },
        settings: { type: 'string' },
        record: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function keepsSeen(given: string): boolean {
  if (given !== 'keep' && given !== 'leave-out')
    throw new UsageError(`--seen-candidates takes keep or leave-out, not "${given}"`);
  return given === 'keep';
}

function whole(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^\d{1,9}$/.test(given)) throw new UsageError(`--${name} takes a whole number, not "${given}"`);
  return Number(given);
}
