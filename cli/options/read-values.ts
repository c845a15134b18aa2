import { fileProblem, messageOf } from '../../connectors/files/file-problem.ts';
import { UsageError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';
import { shown } from './kinds.ts';
import { flagName, type Options, type Values, nearestFlag } from './option.ts';

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

const MOST_BYTES = 2 ** 20;

/**
 * Reads a JSON file of flags by name, in kebab case or camel case: {"rank": 64, "reg-param": 0.05}. Returns
 * values by option key. Throws UsageError for a file without a JSON object and for an unknown name.
 */
function readConfig(file: unknown, options: Options): Readonly<Record<string, unknown>> {
  if (typeof file !== 'string' || file === '')
    throw new UsageError(`--config needs a file, got ${shown(file)}`);
  const content = readJsonObject(file, 'configuration', MOST_BYTES, 'Write {"rank": 64, "maxIter": 15}');
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(content)) {
    const key = Object.keys(options).find((candidate) => candidate === name || flagName(candidate) === name);
    if (key === undefined || key === 'config') {
      const names = Object.keys(options).filter((candidate) => candidate !== 'config');
      const guess = nearestFlag(name, [...names, ...names.map(flagName)]);
      throw new UsageError(`unknown key "${name}" in the configuration`, {
        file,
        advice: guess ? `Did you mean "${guess}"?` : `The keys are: ${names.map(shown).join(', ')}`,
      });
    }
    if (key in values) throw new UsageError(`"${name}" is given twice in the configuration`, { file });
    values[key] = value;
  }
  return values;
}

/**
 * The JSON object in a file that a flag names; `what` describes it in messages. Throws UsageError naming the
 * file if it cannot be read, is not a regular file, is larger than `most` bytes, or has no JSON object.
 */
export function readJsonObject(
  file: string,
  what: string,
  most: number,
  advice: string,
): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = Buffer.from(readRegular(file, most, { phase: what })).toString();
  } catch (error) {
    const problem = fileProblem(error, what, file);
    throw problem instanceof UsageError ? problem : new UsageError(problem.message, { cause: error });
  }
  try {
    const content: unknown = JSON.parse(text.replace(/^\uFEFF/, ''));
    if (typeof content === 'object' && content !== null && !Array.isArray(content))
      return content as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new UsageError(`the ${what} is not JSON: ${messageOf(error).replaceAll(/\s+/g, ' ')}`, { file });
  }
  throw new UsageError(`the ${what} is not a JSON object`, { file, advice });
}
