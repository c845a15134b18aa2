import type { TrainingWarning } from '../rating-warnings.ts';
import type { MetricValues } from './measure-rankings.ts';

/** Facts about a training for advice; absent if not known. */
export interface RankedTraining {
  readonly implicitPrefs?: boolean;
  /** Form of the weights of implicit ratings. */
  readonly weight?: string;
  readonly alpha?: number | string;
  readonly regParam?: number | string;
  readonly unobservedWeight?: number;
}

export interface JudgedRanking {
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
}: JudgedRanking): TrainingWarning | undefined {
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
