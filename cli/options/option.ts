import { UsageError } from '../../engine/errors.ts';
import { nearestName } from '../../operators/params/nearest-name.ts';

/** Headings of --help, in order. */
const groups = [
  'Required:',
  'Without data:',
  'Data:',
  'Text:',
  'Attributes:',
  'Model:',
  'Held-out ratings:',
  'Checkpoints:',
  'Search:',
  'Ranking:',
  'Server:',
  'Machine:',
  'Output:',
  'Options:',
] as const;
export type Group = (typeof groups)[number];

/**
 * A flag as data: its line in --help and the parser of its text. Its key in an `Options` object is the name
 * in code and in configuration files (modelDir); the flag is the same name in kebab case (--model-dir).
 */
export interface Option<T> {
  readonly describe: string;
  /** Heading in --help; default 'Data:'. */
  readonly group?: Group;
  readonly alias?: string;
  /** Takes no value. */
  readonly isSwitch?: boolean;
  /**
   * For a switch that is on by default: the help text of its flag --no-<name>, which --help shows instead.
   */
  readonly off?: string;
  /**
   * For a switch whose default depends on other flags: --no-<name> is accepted too, and --help shows the
   * switch itself.
   */
  readonly isNegatable?: boolean;
  /** Takes several comma-separated parts, and may be repeated. */
  readonly isList?: boolean;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  /** Not shown in --help or the documentation. */
  readonly hidden?: boolean;
  /** The default as --help shows it; the value itself is `fallback`. */
  readonly defaultText?: string;
  readonly fallback: T;
  /** Parses the flag's text, or an entry of a configuration file. Throws UsageError naming flag and text. */
  readonly read: (given: unknown, flag: string) => T;
}

// With a union of the values' types, `Values` could not infer them; no value is read through this type.
export type Options = Readonly<Record<string, Option<unknown>>>;

export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** The options under one heading of --help. */
export function grouped<O extends object>(group: Group, options: O): O {
  return Object.fromEntries(
    Object.entries(options as Options).map(([key, option]) => [key, { ...option, group }]),
  ) as O;
}

/** The options of each heading that has some, in the order of --help. */
export function byHeading(options: Options): readonly (readonly [string, Option<unknown>])[] {
  return groups.flatMap((heading) =>
    Object.entries(options).filter(([, { group = 'Data:' }]) => group === heading),
  );
}

/** A flag as --help shows it, with its help text. */
export function shownFlag(
  key: string,
  { off, describe }: Pick<Option<unknown>, 'off' | 'describe'>,
): { readonly flag: string; readonly describe: string } {
  return off === undefined
    ? { flag: flagName(key), describe }
    : { flag: `no-${flagName(key)}`, describe: off };
}

/** Names of the library that have a shorter flag. */
const short: Readonly<Record<string, string>> = { implicitPrefs: 'implicit' };

export function flagName(key: string): string {
  return (short[key] ?? key).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Throws UsageError for the first of these flags that is given: `fault` says why it has no effect. */
export function refuseFlags(
  given: ReadonlySet<string>,
  names: readonly string[],
  fault: string,
  advice?: string,
): void {
  const found = names.find((name) => given.has(name));
  if (found !== undefined) throw new UsageError(`--${flagName(found)} ${fault}`, { advice });
}

/** The flag, key or command most similar to a word; see nearestName. */
export function nearestFlag(word: string, candidates: readonly string[]): string | undefined {
  return nearestName(word, candidates, flagName);
}
