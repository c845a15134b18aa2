import { tuningParams } from '../../../api/option-params.ts';
import type { SearchSpace } from '../../../api/validation/tuning/search-space.ts';
import { UsageError } from '../../../engine/errors.ts';
import { isValueOf, listed, type Param } from '../../../operators/params/param.ts';
import { columnOptions, policyOptions, readOptions } from '../data/data-options.ts';
import { heldOutRankingOptions } from '../data/held-out-options.ts';
import { baselinesOption } from '../data/ranking-options.ts';
import { choice, flagOf, text, toggle } from '../kinds.ts';
import {
  fakeDevicesOption,
  machineOptions,
  memoryBudgetOption,
  parquetBackendOption,
  spillDirOption,
} from '../machine-options.ts';
import { flagName, grouped, nearestFlag, refuseFlags, type Values } from '../option.ts';
import { commonOptions, forceOption, profileOption, reportOption, traceOption } from '../output-options.ts';
import { checkAlgorithm, type Algorithm, paramOptions, tables } from './param-options.ts';
import { modelDirOption } from './training-options.ts';

/** The flags that affect a search, besides its own. */
const sought = {
  ...heldOutRankingOptions,
  ...paramOptions,
  ...columnOptions,
  ...readOptions,
  ...policyOptions,
};

export const tuneOptions = {
  modelDir: modelDirOption,
  ...grouped('Model:', {
    algorithm: choice('algorithm; --try algorithm=als,sgd compares both', {
      choices: ['als', 'sgd'],
      defaultText: 'als',
    }),
  }),
  ...grouped('Search:', {
    try: text(
      "parameters with the values to try: lists and ranges, such as 'rank=8,16,32 reg-param=0.005..0.2'",
      {
        defaultText:
          'rank, λ and what else matters for the algorithm; implicit: rank, α and ν, and with --timestamp-col half-life',
      },
    ),
    search: flagOf(tuningParams.search),
    trials: flagOf({ ...tuningParams.trials, most: 100_000 }),
    metric: text('rmse, mae, or a ranking metric such as ndcg@20', {
      defaultText: 'rmse; implicit: ndcg@20',
    }),
    baselines: baselinesOption('rankings to compare trials with, for a ranking --metric'),
    validation: text('ratings that trials are measured on; never the test set'),
    validationFraction: flagOf(tuningParams.validationFraction),
    parallel: flagOf({ ...tuningParams.parallelism, most: 64 }),
    warmStart: flagOf(tuningParams.warmStart),
    trialsFile: text('file of completed trials, one JSON line each; kept if given', {
      defaultText: 'MODEL-DIR.trials.ndjson, until the end',
    }),
    resume: toggle('continue an interrupted search'),
  }),
  ...sought,
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  spillDir: spillDirOption,
  parquetBackend: parquetBackendOption,
  ...grouped('Options:', {
    config: text('JSON file with these flags, {"maxIter": 20}; flags win', { alias: 'c' }),
  }),
  force: forceOption,
  profile: profileOption,
  trace: traceOption,
  report: reportOption,
  ...commonOptions,
};

export type TuneValues = Values<typeof tuneOptions>;

/** The given flags that identify a search, besides its own: of data, rankings and parameters. */
export function soughtValues(values: TuneValues, given: ReadonlySet<string>): object {
  return Object.fromEntries(Object.entries(values).filter(([name]) => given.has(name) && name in sought));
}

/** The search space and its algorithms. Throws UsageError for flags that exclude each other. */
export function spaceOf(
  values: TuneValues,
  given: ReadonlySet<string>,
): { readonly space: SearchSpace; readonly algorithms: readonly Algorithm[] } {
  const usual = values.algorithm ?? 'als';
  const { space, algorithms } =
    values.try === undefined
      ? { space: others(usualSpace(usual, values), given), algorithms: [usual] }
      : readSpace(values.try, usual);
  const both = (name: string, other: string) =>
    refuseFlags(given, [name], `and ${other} exclude each other`, 'Leave one of them out');
  if ('algorithm' in space) both('algorithm', '--try algorithm');
  if (given.has('validationFraction')) both('validation', '--validation-fraction');
  if (algorithms.length === 1) checkAlgorithm({ ...values, algorithm: algorithms[0] }, given);
  const twice = Object.keys(space).find((name) => given.has(name));
  if (twice !== undefined)
    throw new UsageError(`${twice} is both a flag and in --try`, { advice: 'Leave one of them out' });
  return { algorithms, space };
}

/** The space without the parameters that flags set. Throws UsageError if none is left. */
function others(space: SearchSpace, given: ReadonlySet<string>): SearchSpace {
  const left = Object.fromEntries(Object.entries(space).filter(([name]) => !given.has(name)));
  if (Object.keys(left).length > 0) return left;
  throw new UsageError('flags set all parameters that tune would search', {
    advice: "Leave one out, or name others with --try, such as --try 'max-iter=5,10,20'",
  });
}

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
function readSpace(
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
      if (param.kind !== 'number' && (param.kind !== 'whole number' || param.or !== undefined))
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
  readonly timestampCol?: string;
}

/** Half-lives to try where the column of times is named: recency matters for days, or for years. */
const HALF_LIVES = ['none', '4d', '8d', '16d', '32d', '64d', '128d', '256d', '512d'];

/** The default search space: around the defaults, which are the first trial. */
export function usualSpace(algorithm: Algorithm, given: UsualOf): SearchSpace {
  const rank = { ...logarithmic(4, 64), whole: true };
  if (algorithm === 'sgd')
    return { rank, regParam: logarithmic(0.003, 0.2), learningRate: logarithmic(0.02, 0.3) };
  if (given.implicitPrefs)
    return { ...implicitSpace(given), ...(given.timestampCol !== undefined && { halfLife: HALF_LIVES }) };
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
  if (param.kind === 'text' || isValueOf(param, value)) return value;
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
