import { UsageError } from '../engine/errors.ts';
import type { JsonObject } from '../engine/json.ts';
import type { PhysicalPlan } from '../engine/plan/physical-plan.ts';
import { checkOptions, requireOptions, runOptionNames } from './check-options.ts';
import { type Dataset, requireDataset } from './dataset.ts';
import type { RunOptions } from './run-session.ts';
import { checkCheckpointOptions, type CheckpointOptions } from './training/checkpoints/checkpoint-options.ts';
import type { ExplainedPlan } from './training/plans/explained-plan.ts';
import type { RankUsersOption } from './validation/ranking-options.ts';
import { checkValues } from '../operators/params/param.ts';
import { checkpointParams, rankUsersParams } from './option-params.ts';

export interface FitOptions extends RunOptions, CheckpointOptions, RankUsersOption {
  /**
   * Ratings that are not trained on, to measure the error after each iteration. Default: none, and no test
   * error.
   */
  readonly validation?: Dataset;
  /**
   * Ranks the validation pairs by the final model: `training.ranking`, with a warning if popularity ranks as
   * well or better. Default: for implicit data only.
   */
  readonly ranking?: boolean;
  /**
   * A plan made before, by `plan` or as JSON: its stages, kernels and places are used. A plan that does not
   * fit is refused with the differences. Default: a new plan.
   */
  readonly plan?: ExplainedPlan | PhysicalPlan | JsonObject;
}

/** The options of `fit` for rankings of the validation set. */
export const fitRankingNames = ['ranking', 'rankUsers'] as const satisfies readonly (keyof FitOptions)[];

/** The options of a method that only plans. */
export type PlanOptions = Omit<FitOptions, 'plan' | (typeof fitRankingNames)[number]>;

/**
 * Throws UsageError for anything but ratings and the options of `fit`, or of `plan`; `method` is for example
 * "ALS.fit".
 */
export function checkFit(
  method: string,
  ratings: Dataset,
  given: FitOptions & { readonly continued?: unknown },
  takesPlan = false,
): void {
  requireDataset(ratings, method);
  const example = '{ validation: dataset }';
  requireOptions(method, given, example);
  // Only the library itself passes `continued`, so no message lists it.
  const { continued: _continued, ...options } = given;
  checkOptions(
    method,
    options,
    ['validation', ...(takesPlan ? ['plan' as const, ...fitRankingNames] : []), ...runOptionNames],
    example,
    checkpointParams,
  );
  checkValues(rankUsersParams, options);
  checkCheckpointOptions(options);
  if (options.ranking === true && options.validation === undefined)
    throw new UsageError('ranking needs a validation set', { advice: 'Pass one with the option validation' });
  if (options.validation !== undefined)
    requireDataset(options.validation, `the option validation of ${method}`);
}
