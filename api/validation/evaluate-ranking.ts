import { DataError, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import { andThen, runInto } from '../../engine/stream/logical-plan.ts';
import type { RankedTraining, TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import {
  rankingEvaluation,
  type ExcludedPairs,
  type RankingEvaluation,
  type RankingSettings,
} from '../../operators/evaluation/ranking/evaluate-ranking.ts';
import type { CandidatePairs } from '../../operators/evaluation/ranking/ranked-pairs.ts';
import {
  type ChosenMetric,
  type RankingBaseline,
  rankingBaselineNames,
  rankingMetricNames,
  readMetric,
} from '../../operators/evaluation/ranking/ranking-metrics.ts';
import { readKnownPairs } from '../../operators/ratings/ids/known-pairs.ts';
import { SelectRatings } from '../../operators/ratings/rows/select-ratings.ts';
import { sortByUser } from '../../operators/ratings/sort-ratings.ts';
import type { FactorModel } from '../../operators/serving/factor-model.ts';
import { reportWarnings } from '../../operators/training/ended-training.ts';
import { checkOptions, requireOptions, runOptionNames } from '../check-options.ts';
import { type Dataset, requireDataset } from '../dataset.ts';
import { pairsOf, ratedPairsOf } from '../found-columns.ts';
import type { Model } from '../model.ts';
import type { RunSession } from '../run-session.ts';
import { reportExclusions } from '../serving/recommend-datasets.ts';
import { halfLifeToTry } from './half-life-to-try.ts';
import { mostRanked, type RankingOptions } from './ranking-options.ts';
import { checkValue, meaningOf } from '../../operators/params/param.ts';
import { rankingParams, listLengthParam } from '../option-params.ts';

const optionNames = [
  'k',
  'exclude',
  'candidates',
  'metrics',
  'baselines',
  'onBadRows',
  ...runOptionNames,
] as const satisfies readonly (keyof RankingOptions)[];

/** See Model.evaluateRanking. */
export async function evaluateRanking(
  model: Model,
  factors: FactorModel,
  session: RunSession,
  test: Dataset,
  options: RankingOptions,
): Promise<RankingEvaluation> {
  requireDataset(test, 'evaluateRanking');
  requireOptions('evaluateRanking', options, '{ k: [10, 20], exclude: train }');
  const measured = checkRanking({ ...options, exclude: options.exclude ?? model.histories });
  const { exclude = model.histories, candidates, minRating, onBadRows } = options;
  for (const [name, pairs] of Object.entries({ exclude, candidates }))
    if (pairs !== undefined) requireDataset(pairs, `the option ${name} of evaluateRanking`);
  const ctx = session.context(options);
  const warnings: TrainingWarning[] =
    exclude === undefined ? [nothingExcluded(candidates !== undefined)] : [];
  warnOfTraining(model.metadata, exclude !== undefined, ctx);
  reportWarnings(warnings, ctx);
  const columns =
    minRating === undefined
      ? await pairsOf(test, model.columns, ctx)
      : await ratedPairsOf(test, model.columns, ctx);
  const settings: RankingSettings = {
    ...measured,
    training: rankedTraining(model.metadata),
    halfLifeToTry: exclude && (() => halfLifeToTry({ train: exclude, test }, ctx)),
    counts: { users: model.userCounts, items: model.itemCounts },
    exclude: exclude && ((held) => excludedPairs(exclude, model.columns, factors, { held, warnings })),
    candidates:
      candidates &&
      (async (held) =>
        candidatePairs(candidates, await pairsOf(candidates, model.columns, held), factors, held)),
  };
  const plan = andThen(test.plan, new SelectRatings(columns, onBadRows));
  const found = await runInto(plan, rankingEvaluation(factors, settings), ctx);
  return { ...found, warnings: [...warnings, ...found.warnings] };
}

/** The options that determine the measurements, with defaults. Throws UsageError for one out of range. */
function checkRanking(
  options: RankingOptions,
): Omit<RankingSettings, 'training' | 'halfLifeToTry' | 'exclude' | 'candidates'> {
  checkOptions('evaluateRanking', options, optionNames, '{ k: [10, 20], exclude: train }', rankingParams);
  const { minRating, coldPairs = 'drop', resamples = 1000, seed = 0 } = options;
  const { metrics = rankingMetricNames } = options;
  const baselines = checkBaselines(options);
  const ks = checkKs(options.k ?? 10);
  checkMetrics(metrics);
  return { metrics, ks, minRating, coldPairs, baselines, resamples, seed, rankUsers: mostRanked(options) };
}

function warnOfTraining(
  { algorithm, params }: JsonObject,
  excluding: boolean,
  { events }: ExecutionContext,
): void {
  const { implicitPrefs, loss } = (params ?? {}) as JsonObject;
  if (typeof algorithm === 'string' && implicitPrefs !== true && loss !== 'bpr') {
    events({
      type: 'warning',
      text: `the model was trained to predict ratings (RMSE), not to rank: its best items are those with the highest predicted rating, whether users would choose them or not${excluding ? '. Compare it with the baselines' : ''}`,
    });
  }
}

function nothingExcluded(listed: boolean): TrainingWarning {
  const ranked = `${listed ? 'candidates' : 'items'} that users have rated already are ranked as well`;
  const text = `no pairs are excluded: ${ranked}, and there are no baselines. Give the training ratings by the option exclude`;
  return { code: 'nothing-excluded', text };
}

interface Reading {
  readonly held: ExecutionContext;
  /** Receives warnings about the pairs. */
  readonly warnings: TrainingWarning[];
}

/** Facts about a model's training, for the advice in warnings; undefined for a model of another program. */
function rankedTraining({ algorithm, params }: JsonObject): RankedTraining | undefined {
  if (typeof algorithm !== 'string') return undefined;
  const { implicitPrefs = false, ...others } = (params ?? {}) as RankedTraining;
  return { ...others, implicitPrefs };
}

async function excludedPairs(
  dataset: Dataset,
  preferred: Model['columns'],
  { users, items }: FactorModel,
  { held: ctx, warnings }: Reading,
): Promise<ExcludedPairs> {
  const { user, item, rating } = await ratedPairsOf(dataset, preferred, ctx);
  const hasRatings = (await dataset.schema({ signal: ctx.signal })).fields.some(
    ({ name }) => name === rating,
  );
  const plan = andThen(dataset.plan, new SelectRatings({ user, item, ...(hasRatings ? { rating } : {}) }));
  const { indexed, coldPairs } = await readKnownPairs(
    plan,
    { users, items },
    dataset.session.splitBytes,
    ctx,
  );
  const warning = reportExclusions({ known: indexed.rows, unknown: coldPairs }, ctx.events);
  if (warning) warnings.push(warning);
  // A pair that is repeated becomes one pair with the mean of its ratings.
  return { block: await sortByUser(indexed, 'mean', ctx), hasRatings, unknown: coldPairs };
}

async function candidatePairs(
  dataset: Dataset,
  columns: { readonly user: string; readonly item: string },
  { users, items }: FactorModel,
  ctx: ExecutionContext,
): Promise<CandidatePairs> {
  const { indexed, coldPairs } = await readKnownPairs(
    andThen(dataset.plan, new SelectRatings(columns)),
    { users, items },
    dataset.session.splitBytes,
    ctx,
  );
  const pairs = indexed.rows + coldPairs;
  if (pairs === 0)
    throw new DataError('there are no candidates', {
      phase: 'evaluate',
      advice: 'Give rows of user and item, or leave the option candidates out to rank all items',
    });
  return { block: await sortByUser(indexed, 'keep', ctx), pairs, coldPairs };
}

/**
 * The baselines to measure. Throws UsageError for others, and for a list without pairs to compute them from.
 */
function checkBaselines({ baselines, exclude }: RankingOptions): readonly RankingBaseline[] {
  const chosen = chosenBaselines(baselines);
  if (Array.isArray(baselines) && chosen.length > 0 && exclude === undefined)
    throw new UsageError('baselines are computed from the training ratings', {
      advice: 'Give them by the option exclude',
    });
  return chosen;
}

function checkKs(given: number | readonly number[]): number[] {
  const ks: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (ks.length === 0) throw new UsageError(`k must be ${meaningOf(listLengthParam)}, got none`);
  for (const k of ks) checkValue('k', listLengthParam, k);
  return [...new Set(ks as number[])].sort((left, right) => left - right);
}

function checkMetrics(metrics: readonly ChosenMetric[]): void {
  const isList = Array.isArray(metrics) && metrics.length > 0;
  const wrong = isList ? metrics.findIndex((name) => readMetric(String(name)) === undefined) : 0;
  if (wrong < 0) return;
  const got = isList ? shown(metrics[wrong]) : Array.isArray(metrics) ? 'none' : shown(metrics);
  throw new UsageError(`metrics must be a list of ranking metrics, got ${got}`, {
    advice: `There are: ${rankingMetricNames.join(', ')}, all but mrr and auc also with a k, such as ndcg@20`,
  });
}

/** The option `baselines` as a list; true: popularity and item-mean. Throws UsageError for other names. */
export function chosenBaselines(
  baselines: boolean | readonly RankingBaseline[] = true,
): readonly RankingBaseline[] {
  if (typeof baselines === 'boolean') return baselines ? ['popularity', 'item-mean'] : [];
  const isList = Array.isArray(baselines);
  const wrong = isList ? baselines.findIndex((name) => !rankingBaselineNames.includes(name)) : 0;
  if (wrong >= 0)
    throw new UsageError(
      `baselines must be true, false or a list of baselines, got ${shown(isList ? baselines[wrong] : baselines)}`,
      { advice: `There are: ${rankingBaselineNames.join(', ')}` },
    );
  return baselines;
}
