import { parseArgs } from 'node:util';
import { UsageError } from '../../index.ts';
import { type PublishedRun, runs } from './runs.ts';
import { settingsFile } from './search.ts';
import { type PublishedSet, sets } from './sets.ts';

interface CommonOptions {
  /** Folder of converted or generated files, parts and models. */
  readonly workFolder: string;
  readonly small: boolean;
  readonly seed: number;
  readonly rank: number | undefined;
  /** Keeps the result for the page of published tables. */
  readonly record: boolean;
}

export interface SetOptions extends CommonOptions {
  readonly set: PublishedSet;
  readonly data: string;
  readonly search: boolean;
  readonly allowLeaked: boolean;
  /** Trains a second time with attributes of the items. */
  readonly attributes: boolean;
  /** Candidates that are train pairs are ranked too. */
  readonly keepSeen: boolean;
  /** Trials of each random search, if not the set's own number. */
  readonly trials: number | undefined;
  /** File of the settings. */
  readonly settings: string;
}

export interface RunOptions extends CommonOptions {
  readonly run: PublishedRun;
  readonly device: 'auto' | 'cpu' | 'gpu';
  /** Part of the preset's users and ratings, if not the device's default. */
  readonly scale: number | undefined;
}

const [setNames, runNames] = [sets, runs].map((all) => all.map(({ name }) => name).join(', '));

export const help = `npm run reproduce -- NAME [--data DIR]

Repeats a published experiment, and prints the result next to published figures.

Published splits, which are trained on and evaluated: ${setNames}

  --data DIR        folder with the set's files, or with folders of sets [default: FACTORFLOW_DATA]
  --search          choose the settings anew, on a part of the training pairs, and keep them
  --attributes      train a second time, with the words or tags of the items
  --trials N        trials of each random search [default: by the set]
  --settings FILE   settings that are used, or kept [default: scripts/reproduce/settings/NAME.json]
  --seen-candidates keep | leave-out: candidates that are training pairs [default: leave-out]
  --allow-leaked    measure though test pairs are in the training part; they are not ranked

Times on ratings that are generated: ${runNames}

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

const definitions = {
  common: {
    work: { type: 'string' },
    small: { type: 'boolean' },
    seed: { type: 'string' },
    rank: { type: 'string' },
    record: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  },
  set: {
    data: { type: 'string' },
    search: { type: 'boolean' },
    attributes: { type: 'boolean' },
    'allow-leaked': { type: 'boolean' },
    'seen-candidates': { type: 'string' },
    trials: { type: 'string' },
    settings: { type: 'string' },
  },
  run: { scale: { type: 'string' }, device: { type: 'string' } },
} as const;

/** The command's options, or undefined where help was asked for. */
export function readOptions(args: readonly string[]): SetOptions | RunOptions | undefined {
  const { values, positionals } = parseFlags(args);
  if (values.help === true) return undefined;
  const name = positionals.join(' ');
  const [set, run] = [sets.find((set) => set.name === name), runs.find((run) => run.name === name)];
  if (set === undefined && run === undefined)
    throw new UsageError(
      `${name === '' ? 'no name of a set' : `no set "${name}"`}: choose one of ${setNames}, ${runNames}`,
    );
  const others = Object.keys(set === undefined ? definitions.set : definitions.run);
  const wrong = Object.keys(values).find((flag) => others.includes(flag));
  if (wrong !== undefined)
    throw new UsageError(
      `--${wrong} cannot be used with ${name}, which ${set ? 'reads the files of --data' : 'generates its ratings'}`,
    );
  const common = {
    workFolder: values.work ?? `build/reproduce/${name}`,
    small: values.small ?? false,
    seed: whole('seed', values.seed) ?? 1,
    rank: whole('rank', values.rank),
    record: values.record ?? false,
  };
  if (run !== undefined)
    return {
      run,
      ...common,
      device: oneOf('device', ['auto', 'cpu', 'gpu'], values.device ?? 'auto'),
      scale: scaleOf(values.scale),
    };
  const data = values.data ?? process.env.FACTORFLOW_DATA;
  if (data === undefined) throw new UsageError("give the folder of the set's files by --data");
  return {
    set: set!,
    ...common,
    data,
    search: values.search ?? false,
    attributes: attributesOf(set!, values.attributes),
    allowLeaked: values['allow-leaked'] ?? false,
    keepSeen:
      oneOf('seen-candidates', ['keep', 'leave-out'], values['seen-candidates'] ?? 'leave-out') === 'keep',
    trials: whole('trials', values.trials),
    settings: values.settings ?? settingsFile(name),
  };
}

function attributesOf({ name, attributes }: PublishedSet, given = false): boolean {
  if (!given || attributes !== undefined) return given;
  throw new UsageError(`--attributes cannot be used with ${name}, whose items have none`);
}

function parseFlags(args: readonly string[]) {
  const options = { ...definitions.common, ...definitions.set, ...definitions.run };
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function whole(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^\d{1,9}$/.test(given)) throw new UsageError(`--${name} takes a whole number, not "${given}"`);
  return Number(given);
}

function oneOf<Value extends string>(name: string, values: readonly Value[], given: string): Value {
  const found = values.find((value) => value === given);
  if (found !== undefined) return found;
  const choices = `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`;
  throw new UsageError(`--${name} takes ${choices}, not "${given}"`);
}

function scaleOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const scale = Number(given);
  if (scale > 0 && scale <= 1 && given.trim() !== '') return scale;
  throw new UsageError(`--scale takes a number above 0 and at most 1, not "${given}"`);
}
