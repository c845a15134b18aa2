/** Headings of --help, in the order in which they appear. */
export const groups = ['Required:', 'Without data:', 'Data:', 'Model:', 'Held-out ratings:', 'Machine:', 'Output:', 'Options:'] as const;
export type Group = (typeof groups)[number];

/**
 * A flag as data: what --help says of it and how its text becomes a value. The key in an `Options` object is its name in
 * code and in configuration files (modelDir); the flag is the same in kebab case (--model-dir).
 */
export interface Option<T> {
  readonly describe: string;
  readonly group: Group;
  readonly alias?: string;
  /** Takes no value. */
  readonly isSwitch?: boolean;
  /** Its text has commas between its parts. */
  readonly isList?: boolean;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  /** Left out of --help and of the documentation. */
  readonly hidden?: boolean;
  /** For --help; the value itself is `fallback`. */
  readonly defaultText?: string;
  readonly fallback: T;
  /** The value of the text that was given, or of what a configuration file holds. Throws UsageError naming flag and text. */
  readonly read: (given: unknown, flag: string) => T;
}

// A union over what each option holds would not let `Values` infer; the values themselves are never touched through this type.
export type Options = Readonly<Record<string, Option<unknown>>>;

export type Values<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export function flagName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
