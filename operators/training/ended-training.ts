import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { ValueWeight } from '../../engine/numbers/value-weight.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { SizedAlsParams } from '../als/implicit/sized-params.ts';
import type { Baselines, DampedMeans } from '../evaluation/baselines.ts';
import type { HeldOutRanking } from '../evaluation/ranking/held-out-ranking.ts';
import type { TrainingWarning } from '../evaluation/rating-warnings.ts';
import type { RatingBlock } from '../ratings/rating-block.ts';
import type { SgdParams } from '../sgd/params.ts';
import type { ModelRows } from './model-rows.ts';
import type { LoopResult } from './training.ts';

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
export interface RankedTraining {
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
  };
  readonly planned: PhysicalPlan;
  /** For implicit data. */
  readonly ratingWeight?: ValueWeight | undefined;
  /** Start of the training, in milliseconds by performance.now(). */
  readonly loaded: number;
  readonly ranked?: RankedTraining | undefined;
}
