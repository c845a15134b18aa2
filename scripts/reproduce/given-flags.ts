import { parseArgs } from 'node:util';
import { UsageError } from '../../index.ts';

const definitions = {
  data: { type: 'string' },
  work: { type: 'string' },
  search: { type: 'boolean' },
  small: { type: 'boolean' },
  'allow-leaked': { type: 'boolean' },
  'seen-candidates': { type: 'string' },
  seed: { type: 'string' },
  rank: { type: 'string' },
  trials: { type: 'string' },
  settings: { type: 'string' },
  record: { type: 'boolean' },
  scale: { type: 'string' },
  device: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

export type GivenFlags = Readonly<ReturnType<typeof parseFlags>['values']>;

/** Flags of sets alone, which read files, and of runs alone, which generate ratings. */
const onlyOf = {
  set: ['data', 'search', 'trials', 'settings', 'seen-candidates', 'allow-leaked'],
  run: ['scale', 'device'],
} as const;

export function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: definitions });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Throws UsageError for a flag of the other kind of names. */
export function refuseOthers(name: string, kind: 'set' | 'run', flags: GivenFlags): void {
  const other = kind === 'set' ? 'run' : 'set';
  const wrong = onlyOf[other].find((flag) => flags[flag] !== undefined);
  if (wrong === undefined) return;
  throw new UsageError(
    `--${wrong} cannot be used with ${name}, which ` +
      (kind === 'set' ? 'reads the files of --data' : 'generates its ratings'),
  );
}

export function wholeFlag(name: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (!/^\d{1,9}$/.test(given)) throw new UsageError(`--${name} takes a whole number, not "${given}"`);
  return Number(given);
}
