import { UsageError } from '../../engine/errors.ts';
import { readConfig } from './config-file.ts';
import { shown } from './kinds.ts';
import { flagName, type Options, type Values } from './option.ts';

/** The words of a command line by flag, before parsing. */
export interface RawValues {
  /** By flag in kebab case: text, true for a switch, a list for a repeated flag. */
  readonly flags: Readonly<Record<string, unknown>>;
  readonly positionals: Readonly<Record<string, readonly string[]>>;
}

/**
 * Values from flags, then from the file of --config (if the command has it), then defaults; each is parsed
 * and checked.
 */
export function readValues<O extends Options>(
  options: O,
  raw: RawValues,
): { values: Values<O>; given: ReadonlySet<keyof O> } {
  const config =
    'config' in options && raw.flags.config !== undefined
      ? readConfig(singleValue(raw.flags.config, '--config'), options)
      : {};
  const given = new Set<keyof O>();
  const entries = Object.entries(options).map(([key, option]) => {
    const flag = `--${flagName(key)}`;
    const fromFlag = raw.flags[flagName(key)];
    const value = fromFlag ?? config[key];
    if (value === undefined) {
      if (option.required) throw new UsageError(`${flag} is needed: ${option.describe}`);
      return [key, option.fallback];
    }
    given.add(key);
    const name = fromFlag === undefined ? `"${key}" in ${String(raw.flags.config)}` : flag;
    return [key, option.read(option.isList ? value : singleValue(value, name), name)];
  });
  return { values: Object.fromEntries(entries) as Values<O>, given };
}

function singleValue(value: unknown, name: string): unknown {
  if (Array.isArray(value))
    throw new UsageError(`${name} takes one value, got ${value.map(shown).join(' and ')}`);
  return value;
}
