import { formatCount } from '../../engine/format.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { ValueWeight } from '../../engine/numbers/value-index.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { SizedAlsParams } from '../als/als-params.ts';
import type { EffectiveRatings } from '../als/implicit/effective-ratings.ts';
import type { AttributeCoefficients } from '../attributes/attribute-matrix.ts';
import {
  coldWarnings,
  compareToMeans,
  compareToPopularity,
  type HalfLifeToTry,
  withHalfLife,
  type ComparedModel,
  pastBestWarnings,
  rankWarnings,
  ratingWarnings,
  type TrainingWarning,
} from '../evaluation/model-warnings.ts';
import type { HeldOutRanking } from '../evaluation/ranking/held-out-ranking.ts';
import type { Baselines, DampedMeans, RatingShape } from '../evaluation/rating-facts.ts';
import type { RatingBlock } from '../ratings/ratings.ts';
import type { SgdParams } from '../sgd/params.ts';
import type { DuplicatePolicy } from '../tasks/tasks.ts';
import type { ModelRows } from './model-rows.ts';
import type { LoopResult, TrainingIteration } from './training.ts';

/** The known pairs of a validation set. */
export interface ValidationPairs {
  readonly block: RatingBlock;
  readonly coldPairs: number;
  /** Absent if no pair is known, or without means. */
  readonly baselines?: Baselines;
}

/** Results of looking at the ratings before training: their means, and warnings. */
export interface RatingFindings {
  readonly means?: DampedMeans;
  readonly warnings: readonly TrainingWarning[];
}

/** The ranking of held-out pairs at the end of a training. */
export interface FinalRanking {
  readonly ranking: HeldOutRanking;
  readonly seconds: number;
}

/** A completed training by either algorithm. */
export interface EndedTraining {
  readonly about:
    | { readonly algorithm: 'als'; readonly params: SizedAlsParams }
    | { readonly algorithm: 'sgd'; readonly params: SgdParams };
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Number of ratings of each item, including ratings of a continued model. */
  readonly itemCounts: Uint32Array | undefined;
  readonly userCounts: Uint32Array | undefined;
  readonly ratings: number;
  readonly duplicates: number;
  readonly test: ValidationPairs | undefined;
  readonly findings: RatingFindings;
  readonly result: Omit<LoopResult<unknown>, 'factors'> & {
    readonly sides: ModelRows;
    readonly plan: PhysicalPlan;
    readonly ratingDeviation?: number;
    /** Coefficients of the attributes of users and items, if a training had them. */
    readonly coefficients?: Readonly<Partial<Record<'users' | 'items', AttributeCoefficients>>>;
  };
  readonly planned: PhysicalPlan;
  /** For implicit data. */
  readonly ratingWeight?: ValueWeight | undefined;
  /** Start of the training, in milliseconds by performance.now(). */
  readonly loaded: number;
  readonly ranked?: FinalRanking | undefined;
}

const LARGEST_RATING = 1e37;

interface FindingOptions {
  readonly duplicates: number;
  readonly policy: DuplicatePolicy;
  readonly test: ValidationPairs | undefined;
  /** The rank of the model to train. */
  readonly rank: number;
  readonly implicit?: EffectiveRatings | undefined;
  /** True for new ratings of a model, which may be few and of any kind. */
  readonly update?: boolean;
}

/** Reports ratings that look wrong, as warnings, before training. */
export function findProblems(
  facts: RatingShape,
  { duplicates, policy, test, rank, implicit, update = false }: FindingOptions,
  ctx: ExecutionContext,
): readonly TrainingWarning[] {
  const { users, items } = facts;
  const sizes = { users: users.rated, items: items.rated };
  const found = update ? [] : [...ratingWarnings(facts, duplicates, policy), ...rankWarnings(rank, sizes)];
  // Implicit data may be counts, or all 1, without a warning.
  const own = implicit
    ? [
        ...implicitWarnings(implicit),
        ...found.filter(({ code }) => code !== 'equal-ratings' && code !== 'counts'),
      ]
    : found;
  const warnings = [
    ...own,
    ...(test
      ? coldWarnings({
          pairs: test.block.ratings + test.coldPairs,
          coldPairs: test.coldPairs,
          set: 'the validation set',
        })
      : []),
  ];
  reportWarnings(warnings, ctx);
  return warnings;
}

/** False for ratings so near the limit of float32 that sums of their means may exceed it. */
export function meansFit({ least, most }: Pick<RatingShape, 'least' | 'most'>): boolean {
  return Math.max(Math.abs(least), Math.abs(most)) < LARGEST_RATING;
}

/** Warns of values that are not positive. */
function implicitWarnings({ negative, zero, users, items }: EffectiveRatings): TrainingWarning[] {
  const facts = [
    [negative, 'ratings below 0 count as dislikes: weight α |r|, preference 0'],
    [zero, 'ratings of 0 have no weight'],
    [users, 'users without a rating above 0 get factors of 0'],
    [items, 'items without a rating above 0 get factors of 0'],
  ] as const;
  const shown = facts.flatMap(([number, text]) => (number === 0 ? [] : [`${formatCount(number)} ${text}`]));
  return shown.length === 0 ? [] : [{ code: 'not-positive', text: `implicit data: ${shown.join('; ')}` }];
}

/** Warns of a model that is no better than damped means. */
export function meansWarnings(
  params: ComparedModel['params'],
  { trainRmse, testRmse }: TrainingIteration,
  baselines: Baselines | undefined,
): TrainingWarning[] {
  if (trainRmse === undefined || testRmse === undefined || baselines === undefined) return [];
  const verdict = compareToMeans({ params, trainRmse, testRmse, baselines });
  return verdict ? [verdict] : [];
}

type EndedRun = EndedTraining['about'] & Pick<EndedTraining['result'], 'iterations' | 'bestIteration'>;

/**
 * Warns if an iteration before the final one was noticeably better on the validation set; early stopping
 * would have kept its factors.
 */
export function overfitWarnings(
  ended: EndedRun,
  { block, baselines }: ValidationPairs,
  findings: RatingFindings,
): TrainingWarning[] {
  const { algorithm, params, iterations, bestIteration } = ended;
  // If all ratings are equal, the errors are only float32 rounding, and comparing them is pointless.
  if (params.earlyStop !== undefined || findings.warnings.some(({ code }) => code === 'equal-ratings'))
    return [];
  const called = algorithm === 'sgd' ? 'epoch' : 'iteration';
  return pastBestWarnings({
    iterations,
    bestIteration,
    called,
    pairs: block.ratings,
    meanRmse: baselines?.mean.rmse,
  });
}

/** Warns of a model that ranks no better than popularity. */
export async function rankingWarnings(
  { algorithm, params }: EndedTraining['about'],
  ranking: HeldOutRanking,
  halfLifeToTry: HalfLifeToTry | undefined,
): Promise<TrainingWarning[]> {
  const training = algorithm === 'als' ? params : { implicitPrefs: false };
  const compared = compareToPopularity({ ...ranking, training });
  const verdict = await withHalfLife(compared, training, halfLifeToTry);
  return verdict ? [verdict] : [];
}

export function reportWarnings(
  warnings: readonly TrainingWarning[] = [],
  { events }: Pick<ExecutionContext, 'events'>,
): void {
  for (const { code, text } of warnings) events({ type: 'warning', code, text });
}
