import { UsageError } from '../../engine/errors.ts';
import { readJsonObject } from './json-file.ts';
import { nearestFlag } from './nearest.ts';
import { flagName, type Options } from './option.ts';
import { shown } from './kinds.ts';

const MOST_BYTES = 2 ** 20;

/**
 * Reads a JSON file of flags by name, in kebab case or camel case: {"rank": 64, "reg-param": 0.05}. Returns
 * values by option key. Throws UsageError for a file without a JSON object and for an unknown name.
 */
export function readConfig(file: unknown, options: Options): Readonly<Record<string, unknown>> {
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
