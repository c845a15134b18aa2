import { formatCount } from '../../engine/format.ts';
import type { ExecutionContext } from '../../engine/run/context.ts';
import type { Baselines, DampedMeans } from '../../operators/evaluation/baselines.ts';
import { compareToMeans, type JudgedModel } from '../../operators/evaluation/compare-to-means.ts';
import type { RatingFacts } from '../../operators/evaluation/rating-facts.ts';
import { ratingWarnings, type TrainingWarning } from '../../operators/evaluation/rating-warnings.ts';
import type { RatingBlock } from '../../operators/ratings/rating-block.ts';
import type { DuplicatePolicy } from '../../operators/tasks/tasks.ts';
import type { TrainingIteration } from '../../operators/training/iteration.ts';

const LARGEST_RATING = 1e37;

/** The known pairs of a validation set. */
export interface ValidationPairs {
  readonly block: RatingBlock;
  readonly coldPairs: number;
  /** Absent where no pair is known, and for an updated model. */
  readonly baselines?: Baselines;
}

/** What was found out about the ratings before training. */
export interface LookedAt {
  readonly means?: DampedMeans;
  readonly warnings: readonly TrainingWarning[];
  /** True where a perfect prediction is one number. */
  readonly equal?: boolean;
}

/** Warns of ratings that look wrong, as events, before they are trained on. */
export function lookAt(facts: RatingFacts, { duplicates, policy, means, test }: { duplicates: number; policy: DuplicatePolicy; means: DampedMeans; test: ValidationPairs | undefined }, ctx: ExecutionContext): LookedAt {
  const warnings = [...ratingWarnings(facts, duplicates, policy), ...(test ? testWarnings(test) : [])];
  tellWarnings(warnings, ctx);
  // Ratings near the end of float32 have means beyond it.
  const fit = Math.max(Math.abs(facts.least), Math.abs(facts.most)) < LARGEST_RATING;
  return { means: fit ? means : undefined, warnings, equal: facts.least === facts.most };
}

function testWarnings({ block, coldPairs }: ValidationPairs): TrainingWarning[] {
  if (block.ratings > 0) return [];
  const text = coldPairs === 0 ? 'the validation set has no ratings' : `the training ratings have no pair of the validation set's ${formatCount(coldPairs)} with both its user and its item: check that the ids of both are of one kind`;
  return [{ code: 'cold-test', text: `${text}; there is no test error` }];
}

/** A warning for a model that is no better than damped means. */
export function judge(params: JudgedModel['params'], { trainRmse, testRmse }: TrainingIteration, baselines: Baselines | undefined, { equal }: LookedAt): TrainingWarning[] {
  if (testRmse === undefined || baselines === undefined || equal) return [];
  const verdict = compareToMeans({ params, trainRmse, testRmse, baselines });
  return verdict ? [verdict] : [];
}

export function tellWarnings(warnings: readonly TrainingWarning[] = [], { events }: Pick<ExecutionContext, 'events'>): void {
  for (const { code, text } of warnings) events({ type: 'warning', code, text });
}
