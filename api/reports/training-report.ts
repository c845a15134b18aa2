import type { JsonObject } from '../../engine/json.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { Place } from '../../engine/plan/place.ts';
import type { SizedAlsParams } from '../../operators/als/als-params.ts';
import { alsTable } from '../../operators/als/params.ts';
import type { TrainingWarning } from '../../operators/evaluation/model-warnings.ts';
import type { HeldOutRanking } from '../../operators/evaluation/ranking/held-out-ranking.ts';
import type { Baselines } from '../../operators/evaluation/rating-facts.ts';
import { idleParams } from '../../operators/params/table.ts';
import { type SgdParams, sgdTable } from '../../operators/sgd/params.ts';
import type { TrainingIteration } from '../../operators/training/training.ts';

/** A model's origin; for a loaded model only the facts in its metadata. */
export type TrainingReport = AlsTraining | SgdTraining;

export interface AlsTraining extends TrainingRun {
  readonly algorithm: 'als';
  readonly params: SizedAlsParams;
}

export interface SgdTraining extends TrainingRun {
  readonly algorithm: 'sgd';
  readonly params: SgdParams;
}

/** The checkpoint from which a run continues. */
export interface ResumedFrom {
  readonly iteration: number;
  readonly checkpoint: string;
  /** Differences between the checkpoint's plan and this run's plan. */
  readonly planChanges: readonly string[];
}

/** A training run by either algorithm. */
export interface TrainingRun {
  readonly ratings: number;
  /** Ratings that repeat an earlier (user, item) pair. */
  readonly duplicates: number;
  /** Rows with null, NaN or infinite values that were left out, in the ratings and the validation set. */
  readonly badRows: number;
  readonly iterations: readonly TrainingIteration[];
  /** The iteration whose factors the model has. */
  readonly bestIteration: number;
  /** Pairs of the validation set, and how many of them have an unknown user or item. */
  readonly testPairs?: number;
  readonly coldPairs?: number;
  /**
   * Errors of the training ratings' means over the known pairs of the validation set; absent if it has none.
   */
  readonly baselines?: Baselines;
  /** Warnings about the ratings and the model; each was also sent as an event. */
  readonly warnings: readonly TrainingWarning[];
  /**
   * Rankings of the known pairs of the validation set by the model; absent if not requested, or if there is
   * no user to rank.
   */
  readonly ranking?: HeldOutRanking;
  /**
   * `validation`: the part of `train` spent on measuring iterations with a validation set. `ranking`: time
   * after `train` for ranking its pairs. Both are absent without such work.
   */
  readonly seconds: {
    readonly load: number;
    readonly train: number;
    readonly validation?: number;
    readonly ranking?: number;
  };
  /** The checkpoint from which the run continued; `iterations` also has the iterations before it. */
  readonly resumedFrom?: ResumedFrom;
  /** The plan as executed: with the cuts and counts of the data, and measurements. */
  readonly plan: PhysicalPlan;
  /** The plan as made, which can be run again. */
  readonly planned: PhysicalPlan;
  /** Standard deviation of the ratings, if λ or regOffset is in units of it. */
  readonly ratingDeviation?: number;
  /** For implicit data: the weight of ratings with the constants of the training set. */
  readonly ratingWeight?: JsonObject;
  /** The search that chose the parameters: metric, trials and their values. */
  readonly tuning?: JsonObject | undefined;
}

/** Parameters that are used only by plans for which the function returns true. */
const ofPlans: Readonly<Record<string, (stages: PhysicalPlan['round']) => boolean>> = {
  cgSteps: (stages) => stages.some(({ kernel }) => kernel?.includes('cg(') === true),
  partitionSums: (stages) => stages.some(({ partitions }) => (partitions?.p ?? 1) > 1),
};

/** The parameters that had an effect in a run, in the order of their table, without switches that are off. */
export function actedParams(training: TrainingReport): readonly (readonly [name: string, value: unknown])[] {
  const { plan } = training;
  const implicit = training.algorithm === 'als' && training.params.implicitPrefs;
  const idle =
    training.algorithm === 'als'
      ? idleParams(alsTable, training.params)
      : idleParams(sgdTable, training.params);
  const isIdle = (name: string, value: unknown) => {
    if (value === undefined || idle.has(name)) return true;
    if (value === false) return name !== 'biases' || implicit;
    if (name === 'precision') return plan.devices[0].kind !== 'gpu';
    return ofPlans[name]?.(plan.round) === false;
  };
  return Object.entries(training.params).filter(([name, value]) => !isIdle(name, value));
}

/**
 * For each place: the bytes that the plan expected for the run as it went, and the bytes that the run
 * allocated (null if not measured).
 */
export function comparedMemory({
  memory,
  measuredMemory,
}: Pick<PhysicalPlan, 'memory' | 'measuredMemory'>): Record<
  Place,
  { readonly planned: number; readonly measured: number | null }
> {
  return Object.fromEntries(
    Object.entries(memory).map(([place, planned]) => [
      place,
      { planned, measured: measuredMemory?.[place] ?? null },
    ]),
  );
}
