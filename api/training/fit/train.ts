import type { ScopeStage } from '../../../engine/run/scope.ts';
import { loadingStages } from '../../../operators/planner/load-stages.ts';
import type { ChosenPlan, FitAlgorithm, FitTypes } from './algorithm.ts';
import type { FitRun } from './fit-run.ts';
import type { InspectPhase } from './inspect.ts';
import type { EndedTraining } from '../ended-training.ts';

/** The result of the training phase. */
export interface TrainPhase {
  /** Start time of the training, in milliseconds by performance.now(). */
  readonly loaded: number;
  readonly result: EndedTraining['result'];
}

/** Runs the rounds of the plan, in the loop that all algorithms share. */
export function trainPhase<Types extends FitTypes>(
  algorithm: FitAlgorithm<Types>,
  { scope, ratings }: FitRun,
  { data, heldOut }: InspectPhase<Types>,
  chosen: ScopeStage<ChosenPlan<Types>>,
): ScopeStage<TrainPhase> {
  const { session } = ratings;
  return scope.stage(loadingStages.train, { data, heldOut, chosen }, async (found, ctx) => {
    const loaded = performance.now();
    // Called when the factors are in host memory, to close GPUs early; not if held-out pairs are ranked,
    // which needs the devices again.
    const fetched = () => found.heldOut === undefined && session.trained();
    return { loaded, result: await algorithm.train(found.data, found.chosen, { fetched }, ctx) };
  });
}
