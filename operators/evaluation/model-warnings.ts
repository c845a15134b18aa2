import { formatCount } from '../../engine/format.ts';
import { type CommonParams, commonParams } from '../params/common.ts';
import type { SgdParams } from '../sgd/params.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';
import type { TrainingIteration } from '../training/training.ts';
import type { MetricValues } from './ranking/ranking-metrics.ts';
import type { Baselines, RatingShape, SideFacts } from './rating-facts.ts';

/** Kinds of warnings; the names are stable between releases. */
type WarningCode =
  | 'one-rating'
  | 'one-row'
  | 'equal-ratings'
  | 'times'
  | 'counts'
  | 'single-ratings'
  | 'repeated-pairs'
  | 'cold-test'
  | 'no-better-than-means'
  | 'no-better-than-popularity'
  | 'past-best'
  | 'not-positive'
  | 'unused-numbers'
  | 'rank-above-size'
  | 'unknown-exclusions'
  | 'mostly-cold'
  | 'nothing-excluded';

/** Information about the ratings or the model for the user, with advice in terms of the library's options. */
export type TrainingWarning = {
  readonly code: WarningCode;
  readonly text: string;
};

/**
 * Ratings of at least this value are taken for times in seconds since 1970 (this is 1973): no scale of
 * ratings is as large.
 */
const LEAST_TIME = 1e8;
/** The largest value that is taken for a time: nanoseconds since 1970, in 2286. */
const LAST_TIME = 1e19;
/**
 * If the maximum is further above the mean than this number of standard deviations, the data do not look like
 * ratings on a scale. For comparison: on a scale of 0 to 100 with most ratings at 0, it is about 10 above.
 */
const HEAVY_TAIL = 12;
/** Scales of stars and points do not exceed this value. */
const LARGEST_SCALE = 20;

/**
 * Users or items with a single rating cause a warning only if their share is larger. Catalogues have many
 * rare items.
 */
const MOST_SINGLE = { user: 0.5, item: 0.9 } as const;

/**
 * Warnings about data that do not look like ratings on a scale. `duplicates`: number of ratings that repeat
 * an earlier pair, if known.
 */
export function ratingWarnings(
  facts: RatingShape,
  duplicates = 0,
  policy: DuplicatePolicy = 'keep',
): TrainingWarning[] {
  if (facts.ratings === 1)
    return [
      {
        code: 'one-rating',
        text:
          'there is one rating: the model can only repeat it. Check the input, the split and the ' +
          'policies for bad rows',
      },
    ];
  const warnings = [valueWarning(facts), ...sideWarnings(facts)];
  if (policy === 'keep' && duplicates > facts.ratings / 2) {
    warnings.push({
      code: 'repeated-pairs',
      text:
        `${formatCount(duplicates)} of ${formatCount(facts.ratings)} ratings repeat an earlier (user, ` +
        `item) pair, as events do. Each counts as a rating of its own, unless onDuplicates (sum, mean ` +
        `or last) makes one of them`,
    });
  }
  return warnings.filter((warning) => warning !== undefined);
}

/**
 * The warning about more factors than users or items: a matrix of m x n ratings has at most the rank min(m, n).
 */
export function rankWarnings(
  rank: number,
  { users, items }: { readonly users: number; readonly items: number },
): TrainingWarning[] {
  const [least, rows] = users < items ? [users, 'users'] : [items, 'items'];
  if (rank <= least || least < 2) return [];
  return [
    {
      code: 'rank-above-size',
      text:
        `rank ${formatCount(rank)} is above the number of ${rows}, ${formatCount(least)}, which is the ` +
        `largest rank that the ratings can have: more factors take time and memory, and add nothing. Lower ` +
        `the rank to ${formatCount(least)} or less`,
    },
  ];
}

function valueWarning({
  ratings,
  mean,
  deviation,
  least,
  most,
  whole,
}: RatingShape): TrainingWarning | undefined {
  if (least === most) {
    const text =
      `all ${formatCount(ratings)} ratings are ${plain(least)}: they show what was chosen, not how much ` +
      `it was liked. A model that predicts ${plain(least)} for every pair is perfect, so its order of ` +
      `items means nothing. Such data are implicit feedback, which ALS takes with implicitPrefs: true`;
    return { code: 'equal-ratings', text: `${text}; check ratingCol if there should be other values` };
  }
  if (whole && least >= LEAST_TIME && most <= LAST_TIME)
    return {
      code: 'times',
      text:
        `the ratings are whole numbers from ${plain(least)} to ${plain(most)}, which look like times. ` +
        `Check ratingCol`,
    };
  if (least < 0 || most <= LARGEST_SCALE || most - mean <= HEAVY_TAIL * deviation) return undefined;
  const kind = whole ? 'counts' : 'amounts';
  return {
    code: 'counts',
    text:
      `the ratings look like ${kind}: up to ${plain(most)}, with a mean of ${plain(mean)}. The few ` +
      `largest decide the squared error. Take them as implicit feedback, with implicitPrefs: true of ` +
      `ALS, or train on log(1 + r) in their place`,
  };
}

/**
 * Warnings about users and items with too few ratings. With a single user, every item has one rating, so only
 * the user is reported.
 */
function sideWarnings({ users, items }: RatingShape): (TrainingWarning | undefined)[] {
  const alone = users.rated === 1 ? 'user' : items.rated === 1 ? 'item' : undefined;
  if (alone !== undefined)
    return [
      { code: 'one-row', text: `there is one ${alone}: factors have nothing to compare. Check ${alone}Col` },
    ];
  return [singleWarning(users, 'user'), singleWarning(items, 'item')];
}

function singleWarning({ rated, single }: SideFacts, side: 'user' | 'item'): TrainingWarning | undefined {
  if (single <= MOST_SINGLE[side] * rated) return undefined;
  const share =
    single === rated
      ? `all ${formatCount(rated)} ${side}s`
      : `${formatCount(single)} of ${formatCount(rated)} ${side}s`;
  return {
    code: 'single-ratings',
    text:
      `${share} have one rating each, from which little can be learned about them. Check that ` +
      `${side}Col names ${side}s, not ${side === 'user' ? 'sessions or orders' : 'copies or events'}`,
  };
}

function plain(value: number): string {
  return Math.abs(value) >= 1000 ? formatCount(value) : String(Number(value.toPrecision(4)));
}

/**
 * A pair is cold if the model does not know its user or item; errors leave it out. With at least this share
 * of cold pairs, the errors no longer describe the test set.
 */
const MOSTLY_COLD = 0.3;

interface TestCounts {
  /** Number of all test pairs, and of those whose user or item has no training rating. */
  readonly pairs: number;
  readonly coldPairs: number;
  /** Default: the test set. */
  readonly set?: 'the test set' | 'the validation set';
}

/** A warning if all test pairs are cold, or at least 30 % of them. */
export function coldWarnings({ pairs, coldPairs, set = 'the test set' }: TestCounts): TrainingWarning[] {
  if (pairs === 0) return [{ code: 'cold-test', text: `${set} has no ratings; there is no test error` }];
  if (coldPairs === pairs) {
    const text = `the model knows none of ${set}'s ${formatCount(coldPairs)} pairs: their users or items have no training rating`;
    return [
      { code: 'cold-test', text: `${text}. Check that the ids are of one kind; there is no test error` },
    ];
  }
  if (coldPairs < MOSTLY_COLD * pairs) return [];
  const percent = Math.floor((100 * coldPairs) / pairs);
  const cold = `${formatCount(coldPairs)} of ${set}'s ${formatCount(pairs)} pairs (${percent} %) are cold: their user or item has no training rating`;
  const rest = `The result is of the other ${formatCount(pairs - coldPairs)} pairs alone`;
  const advice =
    'After a split by time most of the later users are new: hold out the latest ratings of each user instead (leave-out by time), ' +
    'or evaluate only users and items that are known. For another test set check the ids';
  return [{ code: 'mostly-cold', text: `${cold}. ${rest}. ${advice}` }];
}

/**
 * The largest default damping of biases. If a model damps its biases more, they are damped more than the
 * means that the model is compared with.
 */
const MOST_DAMPING = Math.max(...[commonParams.biasDamping.fallback].flat());

/** Errors of a model and of means on the same pairs. */
interface Errors {
  readonly testRmse: number;
  readonly baselines: Baselines;
}

/** A model about which nothing is known except whether it has biases. */
interface JudgedErrors extends Errors {
  readonly biases: boolean;
}

/** A model that was just trained, so that its parameters and its error on the training ratings are known. */
export interface ComparedModel extends Errors {
  readonly params: Pick<
    CommonParams,
    'rank' | 'regParam' | 'biases' | 'maxIter' | 'earlyStop' | 'regOffset' | 'biasDamping'
  > &
    Pick<SgdParams, 'regParamUsers' | 'regParamItems'>;
  readonly trainRmse: number;
}

/**
 * A warning if a model's RMSE is not below the RMSE of damped means. If the parameters of the training are
 * known, it recommends other values.
 */
export function compareToMeans(judged: JudgedErrors | ComparedModel): TrainingWarning | undefined {
  const { testRmse, baselines } = judged;
  const { mean, dampedMeans } = baselines;
  // If the means have an error of 0, all ratings are equal; another warning reports that.
  if (testRmse < dampedMeans.rmse || dampedMeans.rmse === 0) return undefined;
  const [worse, by] =
    testRmse < mean.rmse
      ? ['no better than damped means of items and users', dampedMeans.rmse]
      : ['no better than the mean rating', mean.rmse];
  const text = `the model's test RMSE, ${testRmse.toFixed(4)}, is ${worse}, ${by.toFixed(4)}`;
  return {
    code: 'no-better-than-means',
    text:
      'params' in judged
        ? `${text}: ${reasonAndAdvice(judged)}`
        : `${text}. Train it with other parameters: ${either([...(judged.biases ? [] : ['biases']), 'more regularization', 'a smaller rank'])}`,
  };
}

/**
 * Completes the warning. If the training error is below the damped means' test error, the model overfits;
 * otherwise it was trained for too short or is regularized too much.
 */
function reasonAndAdvice({ params, trainRmse, baselines: { dampedMeans } }: ComparedModel): string {
  const { rank, regParam, biases, maxIter, earlyStop, regOffset, biasDamping, regParamUsers, regParamItems } =
    params;
  const overfits = trainRmse < dampedMeans.rmse;
  const set = (name: string, value: number, when: boolean) =>
    when ? [`${name}: ${Number(value.toPrecision(3))}`] : [];
  // Parameters that set λ: regParam, or its two replacements for users and items, which exclude regParam.
  const lambdas = Object.entries(
    regParamUsers !== undefined && regParamItems !== undefined
      ? { regParamUsers, regParamItems }
      : { regParam },
  );
  const damping = Math.max(...[biasDamping].flat());
  const advice = [
    ...(biases ? set('biasDamping', MOST_DAMPING, damping > MOST_DAMPING) : ['biases: true']),
    ...(overfits
      ? [
          ...(biases
            ? set('regOffset', 2 * regOffset || commonParams.regOffset.fallback, true)
            : set('regOffset', 2 * regOffset, regOffset > 0)),
          ...lambdas.flatMap(([name, lambda]) => set(name, 2 * lambda || 0.1, true)),
          ...set('rank', Math.ceil(rank / 2), rank > 2),
          ...set('earlyStop', 2, earlyStop === undefined),
        ]
      : [
          ...set('regOffset', regOffset / 2, regOffset > 0),
          ...lambdas.flatMap(([name, lambda]) => set(name, lambda / 2, lambda > 0)),
          ...set('maxIter', 2 * maxIter, earlyStop === undefined),
        ]),
  ];
  const reason = overfits
    ? `it fits the training ratings (RMSE ${trainRmse.toFixed(4)}) and not others`
    : `it has not yet fitted the training ratings (RMSE ${trainRmse.toFixed(4)})`;
  return `${reason}. Try ${either(advice)}`;
}

/** "a", "a or b", "a, b or c" */
function either(texts: readonly string[]): string {
  return texts.length < 2 ? texts.join() : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}

/**
 * A value of the final model is noticeably worse than the best iteration's if the difference is at least
 * `part` of the best value, and at least `chance` / √n for n test pairs. In runs that do not overfit the
 * difference is smaller (docs/measured/quality.md).
 */
const LEAST = { error: { part: 0.005, chance: 0.5 }, ranking: { part: 0.02, chance: 6 } } as const;

/**
 * Smaller differences of errors are ignored; a fraction of the error of predicting the mean. If errors are
 * near 0, float32 rounding alone causes differences.
 */
const LEAST_OF_MEAN = 0.001;

/**
 * An early stop that ends the training after fewer iterations without a better value is never recommended: a
 * single worse iteration may be chance.
 */
const LEAST_PATIENCE = 2;

interface MeasuredRun {
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  readonly called: 'iteration' | 'epoch';
  /** Number of known pairs in the validation set. */
  readonly pairs: number;
  /** RMSE of the mean rating on these pairs. */
  readonly meanRmse?: number | undefined;
}

interface MeasureValues {
  readonly name: string;
  /** Values by iteration. */
  readonly values: readonly number[];
  readonly kind: keyof typeof LEAST;
}

/**
 * A warning for each measure on the validation set that was noticeably better after an earlier iteration than
 * after the iteration whose factors the model has: the run overfits, and early stop would keep the best
 * iteration.
 */
export function pastBestWarnings(run: MeasuredRun): TrainingWarning[] {
  const kept = run.iterations.findIndex(({ iteration }) => iteration === run.bestIteration);
  return valuesOfMeasures(run)
    .map((course) => pastBest(course, run, kept))
    .filter((warning) => warning !== undefined);
}

/** The validation measures that every iteration has, each with its values in the order of iterations. */
function valuesOfMeasures({ iterations }: MeasuredRun): MeasureValues[] {
  const errors = valuesOf(iterations, ({ testRmse }) => testRmse);
  const names = Object.keys(iterations.at(-1)?.testMetrics ?? {});
  const rankings = names.map((name) => ({
    name,
    values: valuesOf(iterations, ({ testMetrics }) => testMetrics?.[name]),
    kind: 'ranking' as const,
  }));
  return [{ name: 'RMSE', values: errors, kind: 'error' as const }, ...rankings].filter(
    ({ values }) => values.length > 1,
  );
}

/** Empty if any iteration has no value. */
function valuesOf(
  iterations: readonly TrainingIteration[],
  of: (one: TrainingIteration) => number | undefined,
): number[] {
  const values = iterations.map(of).filter((value) => value !== undefined);
  return values.length === iterations.length ? values : [];
}

function pastBest(
  { name, values, kind }: MeasureValues,
  { iterations, called, pairs, meanRmse = 0 }: MeasuredRun,
  kept: number,
): TrainingWarning | undefined {
  const losses = values.map((value) =>
    Number.isNaN(value) ? Number.POSITIVE_INFINITY : kind === 'error' ? value : -value,
  );
  const at = losses.indexOf(Math.min(...losses));
  const [best, last] = [values[at], values[kept]];
  const [worse, { part: least, chance }] = [losses[kept] - losses[at], LEAST[kind]];
  const part = worse / best;
  if (
    !(part > Math.max(least, chance / Math.sqrt(pairs))) ||
    (kind === 'error' && worse < LEAST_OF_MEAN * meanRmse)
  )
    return undefined;
  const by = Number.isFinite(part)
    ? `${(100 * part).toFixed(1)} % ${kind === 'error' ? 'above' : 'below'} it`
    : 'no finite number beside it';
  const text = `the best test ${name}, ${best.toFixed(4)}, was after ${called} ${iterations[at].iteration}, and the model's, ${last.toFixed(4)}, is ${by}: later ${called}s fit the training ratings more and others less`;
  const metric = kind === 'error' ? '' : ` and earlyStopMetric: '${name}'`;
  return {
    code: 'past-best',
    text: `${text}. Use earlyStop: ${patienceFor(losses, at)}${metric}, which keeps the best`,
  };
}

/**
 * The smallest value of `earlyStop` with which the training would still have reached iteration `best`: the
 * longest gap between two consecutive iterations that were each the best so far.
 */
function patienceFor(losses: readonly number[], best: number): number {
  let [least, since, patience] = [Number.POSITIVE_INFINITY, 0, LEAST_PATIENCE];
  for (const loss of losses.slice(0, best + 1)) {
    since++;
    if (loss >= least) continue;
    patience = Math.max(patience, Number.isFinite(least) ? since : 1);
    [least, since] = [loss, 0];
  }
  return patience;
}

/** Facts about a training for advice; absent if not known. */
export interface RankedTraining {
  readonly implicitPrefs?: boolean;
  /** Form of the weights of implicit ratings. */
  readonly weight?: string;
  readonly alpha?: number | string;
  readonly regParam?: number | string;
  readonly unobservedWeight?: number;
  readonly halfLife?: string;
}

/** Finds a half-life to try, if the held-out ratings are later than the training's. */
export type HalfLifeToTry = () => Promise<string | undefined>;

interface ComparedRanking {
  readonly metrics: MetricValues;
  /** The same metrics for items ranked by their number of users. */
  readonly popularity: MetricValues;
  readonly users: number;
  readonly training?: RankedTraining | undefined;
}

/**
 * Metrics by which a ranking is compared with popularity, in order of preference: the first one that was
 * measured is used.
 */
const JUDGES = ['ndcg', 'recall', 'recall-min', 'map', 'hit-rate', 'precision', 'mrr', 'auc'] as const;

/**
 * A warning if a model ranks no better than a ranking of items by their number of users. Compares NDCG if it
 * was measured, else the first measured metric of JUDGES.
 */
export function compareToPopularity({
  metrics,
  popularity,
  users,
  training = {},
}: ComparedRanking): TrainingWarning | undefined {
  const names = Object.keys(metrics);
  const judge = JUDGES.map((metric) => names.find((name) => name.split('@')[0] === metric)).find(
    (name) => name !== undefined,
  );
  if (users === 0 || judge === undefined) return undefined;
  const [own, other] = [metrics[judge], popularity[judge]];
  // If the model's ranking is perfect, popularity may reach the same value, which is no reason for a warning.
  if (own > other || own === 1) return undefined;
  const comparison = `${own.toFixed(4)}, is no better than ${other.toFixed(4)} of a ranking by popularity`;
  const text = `the model's ${judge}, ${comparison}, which is the same for all users`;
  return { code: 'no-better-than-popularity', text: `${text}. ${adviceFor(training)}` };
}

/**
 * The warning with a half-life to try, where a model of implicit data without one ranks later ratings no better
 * than popularity: what was chosen lately may say more about what comes.
 */
export async function withHalfLife(
  verdict: TrainingWarning | undefined,
  { implicitPrefs, halfLife = 'none' }: RankedTraining = {},
  toTry: HalfLifeToTry | undefined,
): Promise<TrainingWarning | undefined> {
  if (verdict?.code !== 'no-better-than-popularity' || implicitPrefs !== true || halfLife !== 'none')
    return verdict;
  const found = await toTry?.();
  if (found === undefined) return verdict;
  const text =
    `${verdict.text}. All held-out ratings are later than those of the training: try weights that halve with ` +
    `age, halfLife: '${found}'`;
  return { ...verdict, text };
}

function adviceFor({ implicitPrefs, weight, alpha, regParam, unobservedWeight }: RankedTraining): string {
  if (implicitPrefs === false)
    return 'It was trained to predict ratings: for rankings train ALS with implicitPrefs: true';
  if (implicitPrefs === undefined) return 'Train it with other parameters, or search for them (tune)';
  const shown = (value: number | string) =>
    typeof value === 'number' ? Number(value.toPrecision(3)) : value;
  const now = (name: string, value: number | string | undefined) =>
    value === undefined ? [] : [`the option ${name} (now ${shown(value)})`];
  const parameters = [
    ...now('weight', weight),
    ...now('alpha', alpha),
    ...now('unobservedWeight', unobservedWeight),
    ...now('regParam', regParam),
  ];
  return `Try other values of ${parameters.join(', ')}, or search for them (tune)`;
}
