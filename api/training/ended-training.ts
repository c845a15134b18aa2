import type { HeldOutRanking } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { KeyColumn } from '../../engine/keys/key-column.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { ModelRows } from '../../operators/training/model-rows.ts';
import type { LoopResult } from '../../operators/training/training.ts';
import type { RatedRows } from '../histories.ts';
import type { ResumedFrom } from './checkpoints/run-checkpoints.ts';
import type { RatingFindings, ValidationPairs } from './rating-findings.ts';
import type { TrainingReport } from '../reports/training-report.ts';
import type { RatingInput } from '../rating-input.ts';
import type { RunSession } from '../run-session.ts';
import type { ValueWeight } from '../../engine/numbers/value-weight.ts';

/** The ranking of held-out pairs at the end of a training. */
export interface RankedTraining {
  readonly ranking: HeldOutRanking;
  readonly seconds: number;
}

/** A completed run of either algorithm. */
export interface EndedTraining {
  readonly about:
    | Pick<Extract<TrainingReport, { algorithm: 'als' }>, 'algorithm' | 'params'>
    | Pick<Extract<TrainingReport, { algorithm: 'sgd' }>, 'algorithm' | 'params'>;
  readonly session: RunSession;
  readonly input: RatingInput;
  /** The columns for the model. */
  readonly columns: RatingInput['columns'];
  readonly users: KeyColumn;
  readonly items: KeyColumn;
  /** Number of ratings of each item, including ratings of a continued model. */
  readonly itemCounts: Uint32Array | undefined;
  readonly userCounts: Uint32Array | undefined;
  readonly ratings: number;
  readonly rated: RatedRows | undefined;
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
  readonly resumedFrom?: ResumedFrom | undefined;
  /** Milliseconds by performance.now(). */
  readonly started: number;
  readonly loaded: number;
  readonly ranked?: RankedTraining | undefined;
  readonly tuning?: JsonObject | undefined;
}
