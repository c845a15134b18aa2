import type { JsonObject } from '../../engine/json.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { SizedAlsParams } from '../../operators/als/implicit/sized-params.ts';
import type { Baselines } from '../../operators/evaluation/baselines.ts';
import type { HeldOutRanking } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import type { TrainingWarning } from '../../operators/evaluation/rating-warnings.ts';
import type { SgdParams } from '../../operators/sgd/params.ts';
import type { ResumedFrom } from '../training/checkpoints/run-checkpoints.ts';
import type { TrainingIteration } from '../../operators/training/iteration.ts';

/** A model's origin; of a loaded model only the facts in its metadata. */
export type TrainingReport = AlsTraining | SgdTraining;

export interface AlsTraining extends TrainingRun {
  readonly algorithm: 'als';
  readonly params: SizedAlsParams;
}

export interface SgdTraining extends TrainingRun {
  readonly algorithm: 'sgd';
  readonly params: SgdParams;
}

/** A training run by either algorithm. */
export interface TrainingRun {
  readonly ratings: number;
  /** Ratings that repeat an earlier (user, item) pair. */
  readonly duplicates: number;
  /** Rows with null, NaN or infinite values that were left out, of the ratings and of the validation set. */
  readonly badRows: number;
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  /** Pairs of the validation set, and those of them with an unknown user or item. */
  readonly testPairs?: number;
  readonly coldPairs?: number;
  /**
   * Errors of the training ratings' means over the known pairs of the validation set; absent where it has
   * none.
   */
  readonly baselines?: Baselines;
  /** Warnings about the ratings and the model; each was an event too. */
  readonly warnings: readonly TrainingWarning[];
  /**
   * Rankings of the known pairs of the validation set by the model; absent where they were not asked for, and
   * where no user is left to rank.
   */
  readonly ranking?: HeldOutRanking;
  /**
   * `validation`: the part of `train` in which iterations were measured, with a validation set. `ranking`:
   * after `train`, the time in which the model ranked its pairs. Both absent where there was no such work.
   */
  readonly seconds: {
    readonly load: number;
    readonly train: number;
    readonly validation?: number;
    readonly ranking?: number;
  };
  /** The checkpoint that the run went on from; `iterations` has those before it too. */
  readonly resumedFrom?: ResumedFrom;
  /** The plan as it was run: with the cuts and counts of the data, and with the measures of the run. */
  readonly plan: PhysicalPlan;
  /** The plan as it was made, which can be run again. */
  readonly planned: PhysicalPlan;
  /** Standard deviation of the ratings, where λ or regOffset is in units of it. */
  readonly ratingDeviation?: number;
  /** The weight of ratings with the constants of the training set, of implicit data. */
  readonly ratingWeight?: JsonObject;
  /** The search that chose the parameters: its metric, its trials and their values. */
  readonly tuning?: JsonObject | undefined;
}
