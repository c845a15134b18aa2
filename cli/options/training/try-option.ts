import { UsageError } from '../../../engine/errors.ts';
import { listed, type Param } from '../../../operators/params/table.ts';
import type { SearchSpace } from '../../../api/validation/tuning/search-space.ts';
import { flagName } from '../option.ts';
import { type Algorithm, tables } from './param-options.ts';
import { nearestFlag } from '../nearest.ts';

const SYNTAX = "Write names with their values, such as --try 'rank=8,16,32 reg-param=0.01..0.1'";

/** A range wider than this factor is searched on a logarithmic scale. */
const WIDE = 10;

/**
 * Parses --try: words with a parameter's name and its values, as a comma-separated list or a range with two
 * dots.
 *
 *     rank=8,16,32 reg-param=0.005..0.2 algorithm=als,sgd
 *
 * Throws UsageError for a name or a value that an algorithm of the search does not have. `usual`: the
 * algorithm if none is named.
 */
export function readSpace(
  given: string,
  usual: Algorithm,
): { readonly space: SearchSpace; readonly algorithms: readonly Algorithm[] } {
  const words = given
    .split(/\s+/)
    .filter((part) => part !== '')
    .map((word) => {
      const [, flag = '', values = ''] = /^-{0,2}([\w-]+)=(.+)$/.exec(word) ?? [];
      if (flag === '')
        throw new UsageError(`--try has the word ${JSON.stringify(word)}, which is not a name with values`, {
          advice: SYNTAX,
        });
      return { flag, values };
    });
  const named = words
    .find(({ flag }) => flag === 'algorithm')
    ?.values.split(',')
    .map((value) => choiceOf('algorithm', value, ['als', 'sgd']));
  const algorithms = named ?? [usual];
  const space: Record<string, SearchSpace[string]> = {};
  for (const { flag, values } of words) {
    const name = nameOf(flag);
    if (name in space)
      throw new UsageError(`--try names ${flag} twice`, { advice: 'Put all values after one name' });
    if (name === 'algorithm') {
      space.algorithm = algorithms;
      continue;
    }
    const param = paramOf(name, flag, algorithms);
    const range = /^([^,.]+(?:\.\d+)?)\.\.([^,]+)$/.exec(values);
    if (range !== null) {
      if (!['number', 'number or auto', 'whole number'].includes(param.kind))
        throw new UsageError(`${flag} in --try has no ranges`, { advice: SYNTAX });
      const [from, to] = [numberOf(flag, range[1]), numberOf(flag, range[2])];
      space[name] = {
        from,
        to,
        scale: from > 0 && to / from >= WIDE ? 'log' : 'linear',
        ...(param.kind === 'whole number' ? { whole: true } : {}),
      };
    } else space[name] = values.split(',').map((value) => valueOf(param, flag, value));
  }
  return { space, algorithms };
}

/** The flags that affect a search without --try. */
interface UsualOf {
  readonly implicitPrefs?: boolean;
  readonly biases?: boolean;
  readonly unobservedWeight?: number;
  readonly weight?: string;
}

/** The default search space: around the defaults, which are the first trial. */
export function usualSpace(algorithm: Algorithm, given: UsualOf): SearchSpace {
  const rank = { ...logarithmic(4, 64), whole: true };
  if (algorithm === 'sgd')
    return { rank, regParam: logarithmic(0.003, 0.2), learningRate: logarithmic(0.02, 0.3) };
  if (given.implicitPrefs) return implicitSpace(given);
  if (given.biases === false) return { rank, regParam: logarithmic(0.01, 1) };
  return { rank, regParam: logarithmic(0.003, 0.2), regOffset: logarithmic(3, 30) };
}

/**
 * For implicit data. By default λ follows α, so α and ν affect the rankings more than the form of the
 * weights, which has no effect if all ratings are equal (docs/measured/quality.md, Rankings of implicit
 * data). iALS's and Spark's forms have other defaults.
 */
function implicitSpace({ unobservedWeight, weight }: UsualOf): SearchSpace {
  const rank = { ...logarithmic(16, 128), whole: true };
  if (unobservedWeight !== undefined) return { rank, regParam: logarithmic(0.0003, 0.03) };
  if (weight === 'spark') return { rank, alpha: logarithmic(0.3, 100), regParam: logarithmic(0.01, 10) };
  return { rank, alpha: logarithmic(2, 200), regExponent: { from: 0.5, to: 1 } };
}

function logarithmic(from: number, to: number) {
  return { from, to, scale: 'log' as const };
}

/** The parameter with this flag name or library name. */
function nameOf(flag: string): string {
  return (
    Object.values(tables)
      .flatMap(({ params }) => Object.keys(params))
      .find((name) => name === flag || flagName(name) === flag) ?? flag
  );
}

function paramOf(name: string, flag: string, algorithms: readonly Algorithm[]): Param {
  const found = algorithms.map(
    (algorithm) => (tables[algorithm].params as Readonly<Record<string, Param>>)[name],
  );
  const missing = algorithms.find((_, at) => found[at] === undefined);
  if (missing === undefined) return found[0];
  const names = Object.keys(tables[missing].params).map(flagName);
  const near = nearestFlag(flag, names);
  throw new UsageError(`${missing.toUpperCase()} has no parameter ${flag}, which --try names`, {
    advice: near === undefined ? `There are: ${names.join(', ')}` : `Did you mean ${near}?`,
  });
}

function valueOf(param: Param, flag: string, value: string): unknown {
  if (param.kind === 'toggle') return choiceOf(flag, value, ['true', 'false']) === 'true';
  if (param.kind === 'choice') return choiceOf(flag, value, param.choices);
  if (param.kind === 'text' || (param.kind.endsWith('or auto') && value === 'auto')) return value;
  if (param.kind === 'one or two numbers' && value.includes(':'))
    return value.split(':').map((part) => numberOf(flag, part));
  return numberOf(flag, value);
}

function choiceOf<const C extends string>(flag: string, value: string, choices: readonly C[]): C {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new UsageError(`${flag} in --try is ${listed(choices)}, got ${JSON.stringify(value)}`);
}

function numberOf(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value)) return value;
  throw new UsageError(`${flag} in --try has the value ${JSON.stringify(text)}, which is not a number`, {
    advice: SYNTAX,
  });
}
