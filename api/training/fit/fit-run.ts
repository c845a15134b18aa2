import type { ExecutionContext } from '../../../engine/run/context.ts';
import { type PlanDevices, planDevices } from '../../../engine/run/devices.ts';
import type { Scope } from '../../../engine/run/scope.ts';
import type { Dataset } from '../../dataset.ts';
import type { RatingInput } from '../../rating-input.ts';
import type { RunCheckpoints } from '../checkpoints/run-checkpoints.ts';
import { type GivenPlan, plannedDevices } from '../plans/given-plan.ts';
import type { ContinuedFit } from '../continued-fit.ts';

/** The inputs of a fit that all phases know from the start. */
export interface FitRun {
  /** The graph of the run; phases add their stages to it. */
  readonly scope: Scope;
  readonly input: RatingInput;
  /** With column names found, like the validation set. */
  readonly ratings: Dataset;
  readonly validation: Dataset | undefined;
  readonly options: ContinuedFit;
  /** The plan given by the user. */
  readonly given: GivenPlan | undefined;
  readonly checkpoints: RunCheckpoints | undefined;
  /** Start time, in milliseconds by performance.now(). */
  readonly started: number;
}

/** The devices to train on, once they are open. A given plan names them; else all are used. */
export function devicesOf(given: GivenPlan | undefined, { executor }: ExecutionContext): PlanDevices {
  const devices = planDevices(executor);
  return given ? plannedDevices(given, devices) : devices;
}

/**
 * If the columns of implicit data include no rating, adds one that is 1 in every row; else returns the data
 * set unchanged.
 */
export type Rated = (dataset: Dataset, ctx: ExecutionContext) => Promise<Dataset>;

/**
 * The data sets of a fit, or of its plan, with the names of their columns. Throws the errors of
 * RatingInput.found.
 */
export async function foundSets(
  input: RatingInput,
  { ratings, validation }: { readonly ratings: Dataset; readonly validation?: Dataset | undefined },
  ctx: ExecutionContext,
  rated: Rated = async (dataset) => dataset,
): Promise<Pick<FitRun, 'ratings' | 'validation'>> {
  return {
    ratings: await rated(await input.found(ratings, ctx), ctx),
    validation: validation && (await rated(await input.foundTest(validation, ctx), ctx)),
  };
}
