import { formatCount } from '../../engine/format.ts';
import type {
  Evaluation,
  RankingEvaluation,
  TrainingReport,
  EventSink,
  TuningBaselines,
} from '../../index.ts';

/** Parts of evaluations and training reports that several texts and pages use. */
export type Baselines = NonNullable<Evaluation['baselines']>;
export type ErrorBreakdown = NonNullable<Evaluation['breakdown']>;
export type HeldOutRanking = NonNullable<TrainingReport['ranking']>;
export type MetricValues = RankingEvaluation['metrics'];
export type TrainingIteration = TrainingReport['iterations'][number];
export type TrainingWarning = TrainingReport['warnings'][number];

type Errors = Readonly<Record<'rmse' | 'mae', number | undefined>>;

/**
 * "0.8731; the mean 1.0430, damped means 0.9012": an error compared with simple predictors over the same
 * pairs.
 */
export function besideMeans(of: keyof Errors, own: number, baselines: Baselines | undefined): string {
  if (baselines === undefined) return own.toFixed(4);
  return `${own.toFixed(4)}; the mean ${figure(baselines.mean[of])}, damped means ${figure(baselines.dampedMeans[of])}`;
}

function figure(value: number): string {
  return Number.isFinite(value) ? value.toFixed(4) : 'beyond the numbers';
}

/** Metrics of warm and of cold pairs with their titles, if there are cold ones. */
export function pairParts({ warm, cold }: Pick<RankingEvaluation, 'warm' | 'cold'>) {
  return warm && cold
    ? ([
        ['warm', warm.metrics],
        ['cold', cold.metrics],
      ] as const)
    : [];
}

/** Errors on warm and on cold pairs as facts, if there are cold ones. */
export function partFacts({ warm, cold }: Pick<Evaluation, 'warm' | 'cold'>) {
  if (warm === undefined || cold === undefined) return [];
  const text = ({ rmse, mae, pairs }: typeof cold) =>
    pairs === 0 ? '0' : `${formatCount(pairs)}: RMSE ${figure(rmse)}, MAE ${figure(mae)}`;
  return [
    ['warm pairs', text(warm)],
    ['cold pairs', `${text(cold)}; users and items without ratings, known by attributes`],
  ] as const;
}

/** Warnings about a model that was just trained or evaluated; the command's result shows them. */
const inResult: readonly (string | undefined)[] = [
  'no-better-than-means',
  'no-better-than-popularity',
  'past-best',
] satisfies TrainingWarning['code'][];

/** True for a warning that is shown in a result; others are only on stderr. */
export function isVerdict({ code }: { readonly code?: string }): boolean {
  return inResult.includes(code);
}

/** A listener for commands whose result shows the warnings about the model: it drops these events. */
export function withoutVerdict(onEvent: EventSink): EventSink {
  return (event) => {
    if (event.type !== 'warning' || !isVerdict(event)) onEvent(event);
  };
}

/** Titles of baselines in tables. */
const titles: Readonly<Record<keyof TuningBaselines, string>> = {
  popularity: 'popularity',
  itemMean: 'item mean',
  itemKnn: 'item-kNN',
  ease: 'EASE',
  mean: 'the mean',
  dampedMeans: 'damped means',
};

type Titled<Value> = readonly (readonly [title: string, value: Value])[];

/** The measured baselines of an evaluation with their titles in tables. */
export function namedBaselines(baselines: RankingEvaluation['baselines']): Titled<MetricValues> {
  return titled<MetricValues>(baselines);
}

/** The baselines of a search with their titles. */
export function searchBaselines(baselines: TuningBaselines): Titled<number> {
  return titled<number>(baselines);
}

function titled<Value>(values: Partial<Record<keyof TuningBaselines, Value>>): Titled<Value> {
  return Object.entries(titles).flatMap(([name, title]) => {
    const value = values[name as keyof TuningBaselines];
    return value === undefined ? [] : [[title, value] as const];
  });
}

/**
 * The metrics of held-out pairs, each compared with a ranking by popularity, and the number of users: entries
 * for `facts`.
 */
export function heldOutRankingFacts(
  ranking: HeldOutRanking | undefined,
): (readonly [name: string, value: string])[] {
  if (ranking === undefined) return [];
  const { metrics, popularity } = ranking;
  const lines = Object.keys(metrics).map(
    (name) =>
      [`test ${name}`, `${metrics[name].toFixed(4)}; popularity ${popularity[name].toFixed(4)}`] as const,
  );
  return [...lines, ['ranked users', rankedUsersText(ranking)]];
}

/** "10,000 of 52,643, drawn by the seed; --rank-users all ranks all" */
export function rankedUsersText({
  users,
  availableUsers,
}: Pick<HeldOutRanking, 'users' | 'availableUsers'>): string {
  return availableUsers > users
    ? `${formatCount(users)} of ${formatCount(availableUsers)}, drawn by the seed; --rank-users all ranks all`
    : formatCount(users);
}

/** The object for `--json`; null if nothing was ranked. */
export function heldOutRankingJson(ranking: HeldOutRanking | undefined) {
  return ranking === undefined
    ? null
    : { ...ranking, metrics: { ...ranking.metrics }, popularity: { ...ranking.popularity } };
}
