import { CapacityError } from '../../../engine/errors.ts';
import type { EventSink } from '../../../engine/events.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import type { RankingBaseline } from '../../../operators/evaluation/ranking/ranking-metrics.ts';
import { validationBaselines } from '../../../operators/evaluation/ranking/measure-baselines.ts';
import { rootSource } from '../../../engine/stream/logical-plan.ts';
import { keepKnown } from '../../../operators/ratings/ids/known-pairs.ts';
import { sortByUser } from '../../../operators/ratings/sort-ratings.ts';
import type { BadRowPolicy } from '../../../operators/ratings/rows/bad-rows.ts';
import { RatingInput } from '../../rating-input.ts';
import { requireReplayable } from '../../replayable.ts';
import type { RunOptions } from '../../run-session.ts';
import { foundSets } from '../../training/run-fit.ts';
import { unratedAsOnes } from '../../training/unrated-as-ones.ts';
import { chosenBaselines } from '../chosen-baselines.ts';
import { checkRankUsers } from '../rank-users.ts';
import { isError } from '../error-metrics.ts';
import type { Trial, TrialRatings, TunedEstimator, TuningMetric } from './trial.ts';
import type { TrainValidationSplitOptions, TuningBaselines } from './tuning-options.ts';

/** Settings of an estimator of this library that decide which pairs are ranked. */
interface OwnSettings {
  readonly columns: { readonly user: string; readonly item: string; readonly rating?: string };
  readonly onBadRows?: BadRowPolicy;
  readonly params?: { readonly seed?: number; readonly implicitPrefs?: boolean };
}

/** Values of a ranking metric by baselines, on the pairs and users that trials are measured on. */
export async function rankedBaselines(
  metric: TuningMetric,
  sets: TrialRatings,
  estimator: TunedEstimator,
  options: Pick<TrainValidationSplitOptions, 'baselines' | 'rankUsers'>,
  run: RunOptions & { readonly onEvent: EventSink },
): Promise<TuningBaselines> {
  const baselines = chosenBaselines(options.baselines);
  if (isError(metric) || baselines.length === 0) return {};
  // The pairs are read once more than trials read them.
  if (options.baselines !== undefined) requireReplayable(sets.validation, 'baselines');
  else if (!rootSource(sets.validation.plan).replayable) return {};
  const work = (ctx: ExecutionContext) =>
    measure(metric, sets, { estimator, baselines, rankUsers: checkRankUsers(options) }, ctx);
  try {
    const found = await Holdings.within(
      sets.train.session.context({ ...run, onEvent: phasesTo(run.onEvent) }),
      work,
    );
    for (const [key, value] of Object.entries(found))
      run.onEvent({ type: 'note', text: `baseline ${nameOf(key)}: ${metric} ${value.toFixed(4)}` });
    return found;
  } catch (error) {
    // Default baselines must not end a search.
    if (options.baselines !== undefined || !(error instanceof CapacityError)) throw error;
    run.onEvent({ type: 'warning', text: `the baselines were not measured: ${error.summary}` });
    return {};
  }
}

/** The baselines of an error metric: of a trial, since all trials have the same ones. */
export function errorBaselines(metric: TuningMetric, { baselines }: Trial): TuningBaselines {
  return isError(metric) && baselines !== undefined
    ? { mean: baselines.mean[metric], dampedMeans: baselines.dampedMeans[metric] }
    : {};
}

async function measure(
  metric: TuningMetric,
  { train, validation }: TrialRatings,
  {
    estimator,
    baselines,
    rankUsers,
  }: {
    readonly estimator: TunedEstimator;
    readonly baselines: readonly RankingBaseline[];
    readonly rankUsers: number;
  },
  ctx: ExecutionContext,
): Promise<TuningBaselines> {
  const { columns, onBadRows, params = {} }: OwnSettings = estimator;
  const input = new RatingInput({ ...(onBadRows && { onBadRows }) }, columns);
  let hasRatings = true;
  const sets = await foundSets(input, { ratings: train, validation }, ctx, async (dataset) => {
    if (params.implicitPrefs !== true) return dataset;
    const rated = await unratedAsOnes(dataset, input.columnsOf(dataset).rating, ctx);
    if (rated.plan !== dataset.plan) hasRatings = false;
    return rated;
  });
  const indexed = await input.index(sets.ratings, sets.validation, ctx);
  const { users, items } = indexed;
  const known = await keepKnown(await input.readPairs(sets.validation ?? validation, ctx), indexed, ctx);
  // A pair that is repeated becomes one pair with the mean of its ratings, as in evaluateRanking.
  const pairs = {
    users,
    items,
    train: await sortByUser(indexed, 'mean', ctx),
    test: await sortByUser(known.indexed, 'keep', ctx),
    hasRatings,
  };
  const found = await validationBaselines(
    metric,
    baselines,
    pairs,
    { rankUsers, seed: params.seed ?? 0 },
    ctx,
  );
  return Object.fromEntries(Object.entries(found).filter(([, value]) => Number.isFinite(value)));
}

/** The name that the option has for a member: item-mean for itemMean. */
function nameOf(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Passes only the phases of slow baselines on: what is read and warned of, trials report. */
function phasesTo(onEvent: EventSink): EventSink {
  return (event) => {
    if ('phase' in event && (event.phase === 'item-knn' || event.phase === 'ease')) onEvent(event);
  };
}
