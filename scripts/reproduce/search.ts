import { join } from 'node:path';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type Flags, flagWords, runCommand } from './command.ts';
import type { PublishedSet } from './sets.ts';

/** Settings of a set, as scripts/reproduce/settings/NAME.json keeps them. */
export interface Settings {
  /** Flags of `train`. */
  readonly flags: Readonly<Record<string, string | number>>;
  /** Left out where the settings were not found by this command's search. */
  readonly chosen?: {
    /** Day of the search, UTC. */
    readonly date: string;
    /** Command and flags that hold the validation part out of the training part. */
    readonly validation: string;
    readonly metric: string;
    /** The metric's value on the validation part. */
    readonly value: number;
    /** Number of settings that were tried, and seconds of the search. */
    readonly trials: number;
    readonly seconds: number;
  };
}

/** The file of the settings that the repository keeps. */
export function settingsFile(set: string): string {
  return join(import.meta.dirname, 'settings', `${set}.json`);
}

export function readSettings(file: string): Settings | undefined {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Settings) : undefined;
}

export function writeSettings(file: string, settings: Settings): void {
  writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`);
}

interface Trial {
  readonly params: Readonly<Record<string, number | string>>;
  readonly bestIteration: number;
  readonly value: number;
}

interface Tuned {
  readonly best: Trial;
  readonly trials: readonly Trial[];
}

/**
 * The two forms of weights, with the parameters that are searched together: iALS's, an unobserved weight w
 * with λ (n_u + w n), and Spark's, 1 + α with λ n^ν.
 */
const forms: readonly { readonly flags: Flags; readonly space: string }[] = [
  {
    flags: { alpha: 1, 'reg-exponent': 1 },
    space: 'unobserved-weight=0.0005..0.05 reg-param=0.002..0.1',
  },
  { flags: { weight: 'spark' }, space: 'alpha=5..300 reg-param=0.1..20 reg-exponent=0.5,0.75,1' },
];

interface SearchOptions {
  /** File of the training part. */
  readonly train: string;
  readonly workFolder: string;
  readonly seed: number;
  /** Trials of each form, if not the set's own number. */
  readonly trials: number | undefined;
}

/** Chooses settings on a validation part of the training part; the test part is not opened. */
export function searchSettings(
  { search }: PublishedSet,
  { train, workFolder, seed, trials }: SearchOptions,
): Required<Settings> {
  const start = performance.now();
  const parts = join(workFolder, 'parts');
  runCommand(['split', train], { output: parts, ...search.heldOut, seed, force: true });
  const tune = (flags: Flags): Tuned =>
    runCommand<Tuned>(['tune', join(parts, 'train')], {
      validation: join(parts, 'test'),
      implicit: true,
      metric: search.metric,
      'rank-users': search.users,
      'max-iter': search.iterations,
      'no-ranking': true,
      force: true,
      ...flags,
      seed,
      'model-dir': join(workFolder, 'tuned'),
    }).output;
  const random = { search: 'random', trials: trials ?? search.trials, rank: search.rank };
  const tuned = forms.map(({ flags, space }) => ({
    flags,
    ...tune({ ...flags, ...random, try: space }),
  }));
  const [first] = tuned.toSorted((a, b) => b.best.value - a.best.value);
  const found = { ...first.flags, ...flagsOf(first.best) };
  const { 'reg-param': lambda, 'max-iter': iterations, ...others } = found;
  const larger = tune({
    ...others,
    'max-iter': Math.min(search.iterations, 2 * Number(iterations)),
    search: 'grid',
    try: `rank=${search.ranks.join(',')} reg-param=${lambdas(Number(lambda))}`,
  });
  const isLarger = larger.best.value > first.best.value;
  const flags = isLarger ? { ...found, ...flagsOf(larger.best) } : { ...found, rank: search.rank };
  return {
    flags: flags as Settings['flags'],
    chosen: {
      date: new Date().toISOString().slice(0, 10),
      validation: `split ${flagWords(search.heldOut).join(' ')} --seed ${seed}`,
      metric: search.metric,
      value: Math.max(larger.best.value, first.best.value),
      trials: [...tuned, larger].reduce((sum, { trials }) => sum + trials.length, 0),
      seconds: Math.round((performance.now() - start) / 1000),
    },
  };
}

/** A trial as flags: its parameters, and the iteration that ranked best. */
function flagsOf({ params, bestIteration }: Trial): Readonly<Record<string, number | string>> {
  const named = Object.entries(params).map(([name, value]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    value,
  ]);
  return { ...Object.fromEntries(named), 'max-iter': bestIteration };
}

/** λ as found, and smaller ones, which larger ranks often prefer. */
function lambdas(found: number): string {
  return [1, 0.7, 0.5].map((factor) => Number((found * factor).toPrecision(3))).join(',');
}
