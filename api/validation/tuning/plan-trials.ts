import { UsageError } from '../../../engine/errors.ts';
import { checkOptions, checkSeed } from '../../check-options.ts';
import { shown } from '../../../engine/shown.ts';
import { chosenBaselines } from '../chosen-baselines.ts';
import { checkRankUsers } from '../rank-users.ts';
import { checkSpace, gridOf, randomTrials, type TrialParams } from './search-space.ts';
import { isError } from '../error-metrics.ts';
import { type TuningMetric, tuningMetricOf } from './trial.ts';
import type { SearchStrategy, TrainValidationSplitOptions } from './tuning-options.ts';

const optionNames = [
  'estimator',
  'grid',
  'space',
  'search',
  'trials',
  'first',
  'metric',
  'validationFraction',
  'seed',
  'parallelism',
  'warmStart',
  'ranking',
  'rankUsers',
  'baselines',
] as const;

/** Default number of trials of a random search. */
const USUAL_TRIALS = 30;

/** Throws UsageError for an option that is unknown, missing or out of range. */
export function checkTuning(options: TrainValidationSplitOptions): void {
  checkOptions('TrainValidationSplit', options, optionNames, '{ estimator, grid }');
  const {
    estimator,
    grid,
    space,
    metric = 'rmse',
    validationFraction = 0.1,
    seed = 0,
    trials = USUAL_TRIALS,
    parallelism = 1,
  } = options;
  if (typeof estimator !== 'function')
    throw new UsageError(
      `estimator must be a function such as (params) => new ALS(params), got ${shown(estimator)}`,
    );
  if ((grid === undefined) === (space === undefined))
    throw new UsageError('TrainValidationSplit takes a grid, or a space', {
      advice: "For example { space: { rank: [8, 16], regParam: { from: 0.01, to: 0.1, scale: 'log' } } }",
    });
  for (const [name, value] of Object.entries({ trials, parallelism })) {
    if (!Number.isInteger(value) || value < 1)
      throw new UsageError(`${name} must be a whole number of 1 or more, got ${shown(value)}`);
  }
  if (!(validationFraction > 0 && validationFraction < 1))
    throw new UsageError(
      `validationFraction must be a number between 0 and 1, got ${shown(validationFraction)}`,
    );
  checkSeed(seed);
  checkRankUsers(options);
  checkBaselines(tuningMetricOf(metric), options.baselines);
  if (space !== undefined) checkSpace(space);
}

function checkBaselines(metric: TuningMetric, baselines: TrainValidationSplitOptions['baselines']): void {
  chosenBaselines(baselines);
  if (isError(metric) && Array.isArray(baselines))
    throw new UsageError(`baselines such as popularity are rankings, and the metric is ${metric}`, {
      advice: 'Leave the option baselines out, or compare by a ranking metric such as ndcg@20',
    });
}

/**
 * The strategy of a search and its combinations in order. Throws UsageError if the options contradict each
 * other.
 */
export function planTrials({
  grid,
  space = {},
  trials,
  seed = 0,
  first = [],
  ...options
}: TrainValidationSplitOptions): {
  readonly search: SearchStrategy;
  readonly params: readonly TrialParams[];
} {
  const lists = Object.values(space).every((values) => Array.isArray(values));
  const { search = lists ? 'grid' : 'random' } = options;
  if (!['grid', 'random', 'halving'].includes(search))
    throw new UsageError(`search must be grid, random or halving, got ${shown(search)}`);
  if (grid !== undefined && search === 'random')
    throw new UsageError('search random takes a space', { advice: 'Give a space, or leave search out' });
  if (grid !== undefined) return { search, params: grid };
  const all = search === 'grid' || (search === 'halving' && lists && trials === undefined);
  const most = trials ?? USUAL_TRIALS;
  const params = all ? gridOf(space) : [...first, ...randomTrials(space, most, seed)].slice(0, most);
  return { search, params };
}
