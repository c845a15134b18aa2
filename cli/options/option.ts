/** Headings of --help, in the order in which they appear. */
export const groups = [
  'Required:',
  'Without data:',
  'Data:',
  'Text:',
  'Model:',
  'Held-out ratings:',
  'Checkpoints:',
  'Search:',
  'Ranking:',
  'Machine:',
  'Output:',
  'Options:',
] as const;
export type Group = (typeof groups)[number];

/**
 * A flag as data: its line in --help and the reader of its text. Its key in an `Options` object is the name
 * in code and in configuration files (modelDir); the flag is the same name in kebab case (--model-dir).
 */
export interface Option<T> {
  readonly describe: string;
  readonly group: Group;
  readonly alias?: string;
  /** Takes no value. */
  readonly isSwitch?: boolean;
  /**
   * Of a switch that is on by default: the line of its flag --no-<name>, which stands in --help in its place.
   */
  readonly off?: string;
  /**
   * Of a switch whose default depends on other flags: --no-<name> is taken too, and --help shows the switch
   * itself.
   */
  readonly isNegatable?: boolean;
  /** Takes several parts with commas between them, and may be given more than once. */
  readonly isList?: boolean;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  /** Left out of --help and of the documentation. */
  readonly hidden?: boolean;
  /** For --help; the value itself is `fallback`. */
  readonly defaultText?: string;
  readonly fallback: T;
  /**
   * The value of the flag's text, or of an entry of a configuration file. Throws UsageError naming flag and
   * text.
   */
  readonly read: (given: unknown, flag: string) => T;
}

// A union of the values' types would not let `Values` infer; no value is reached through this type.
export type Options = Readonly<Record<string, Option<unknown>>>;

export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** A flag as --help shows it, with its line. */
export function shownFlag(
  key: string,
  { off, describe }: Pick<Option<unknown>, 'off' | 'describe'>,
): { readonly flag: string; readonly describe: string } {
  return off === undefined
    ? { flag: flagName(key), describe }
    : { flag: `no-${flagName(key)}`, describe: off };
}

/** Names of the library that are shorter as flags. */
const short: Readonly<Record<string, string>> = { implicitPrefs: 'implicit' };

export function flagName(key: string): string {
  return (short[key] ?? key).replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
