import { UsageError } from '../../../engine/errors.ts';
import type { SearchSpace } from '../../../api/validation/tuning/search-space.ts';
import { columnOptions, policyOptions } from '../data/data-options.ts';
import { heldOutRankingOptions } from '../data/held-out-options.ts';
import { baselinesOption } from '../data/ranking-options.ts';
import { readOptions } from '../data/text-options.ts';
import { choice, decimal, text, toggle, wholeNumber } from '../kinds.ts';
import {
  fakeDevicesOption,
  machineOptions,
  memoryBudgetOption,
  parquetBackendOption,
  spillDirOption,
} from '../machine-options.ts';
import type { Values } from '../option.ts';
import { commonOptions, forceOption, profileOption, reportOption, traceOption } from '../output-options.ts';
import { checkAlgorithm } from './check-algorithm.ts';
import { type Algorithm, paramOptions } from './param-options.ts';
import { modelDirOption } from './training-options.ts';
import { readSpace, usualSpace } from './try-option.ts';

const search = 'Search:';

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
  algorithm: choice({
    describe: 'algorithm; --try algorithm=als,sgd compares both',
    group: 'Model:',
    choices: ['als', 'sgd'],
    defaultText: 'als',
  }),
  try: text({
    describe:
      "parameters with the values to try: lists and ranges, such as 'rank=8,16,32 reg-param=0.005..0.2'",
    group: search,
    defaultText: 'rank, λ and what else matters for the algorithm; implicit: rank, α and ν',
  }),
  search: choice({
    describe:
      'all combinations; random combinations; or random ones of which only the best third continues, ' +
      'again and again',
    group: search,
    choices: ['grid', 'random', 'halving'],
    defaultText: 'grid if all values are lists, else random',
  }),
  trials: wholeNumber({
    describe: 'number of trials of a random search',
    group: search,
    least: 1,
    most: 100_000,
    fallback: 30,
  }),
  metric: text({
    describe: 'rmse, mae, or a ranking metric such as ndcg@20',
    group: search,
    defaultText: 'rmse; implicit: ndcg@20',
  }),
  baselines: baselinesOption('rankings to compare trials with, for a ranking --metric', search),
  validation: text({ describe: 'ratings that trials are measured on; never the test set', group: search }),
  validationFraction: decimal({
    describe: 'the part of the ratings that trials are measured on',
    group: search,
    above: 0,
    below: 1,
    fallback: 0.1,
  }),
  parallel: wholeNumber({
    describe: 'trials at the same time; each uses all workers already',
    group: search,
    least: 1,
    most: 64,
    fallback: 1,
  }),
  warmStart: toggle({
    describe:
      'ALS: start with the factors of the next larger λ, with half the iterations; faster, and ' +
      'slightly better for small λ',
    group: search,
  }),
  trialsFile: text({
    describe: 'file of completed trials, one JSON line each; kept if given',
    group: search,
    defaultText: 'MODEL-DIR.trials.ndjson, until the end',
  }),
  resume: toggle({ describe: 'continue an interrupted search', group: search }),
  ...sought,
  ...machineOptions,
  fakeDevices: fakeDevicesOption,
  memoryBudget: memoryBudgetOption,
  spillDir: spillDirOption,
  parquetBackend: parquetBackendOption,
  config: text({
    describe: 'JSON file with these flags, {"maxIter": 20}; flags win',
    group: 'Options:',
    alias: 'c',
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
  if ('algorithm' in space && given.has('algorithm'))
    throw new UsageError('--algorithm and --try algorithm exclude each other', {
      advice: 'Leave one of them out',
    });
  if (given.has('validation') && given.has('validationFraction'))
    throw new UsageError('--validation and --validation-fraction exclude each other', {
      advice: 'Leave one of them out',
    });
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
