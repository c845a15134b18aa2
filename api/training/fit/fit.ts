import { type ExecutionContext, followed } from '../../../engine/run/context.ts';
import { Holdings } from '../../../engine/run/holdings.ts';
import { Scope } from '../../../engine/run/scope.ts';
import type { Dataset } from '../../dataset.ts';
import type { Model } from '../../model.ts';
import type { RatingInput } from '../../rating-input.ts';
import type { CheckpointedRun } from '../checkpoints/checkpoint-state.ts';
import { withCheckpoints } from '../checkpoints/with-checkpoints.ts';
import { requirePlan } from '../plans/given-plan.ts';
import { dataBytes } from '../plans/memory-budget.ts';
import { dependsOnDevice, type DeviceParams, trainingDevice } from '../training-device.ts';
import type { FitAlgorithm, FitTypes } from './algorithm.ts';
import { finishPhase } from './finish.ts';
import { type FitRun, foundSets, type Rated } from './fit-run.ts';
import { inspectPhase } from './inspect.ts';
import { planPhase } from './plan.ts';
import { readPhase } from './read.ts';
import { trainPhase } from './train.ts';
import type { ContinuedFit } from '../continued-fit.ts';

/** An algorithm with its parameters, before a fit opens its data sets. */
export interface Fit<Types extends FitTypes> {
  readonly about: CheckpointedRun & { readonly params: DeviceParams };
  readonly input: RatingInput;
  /** Rejects parameters before anything is read. */
  readonly check?: (ctx: ExecutionContext) => Promise<unknown>;
  readonly rated?: Rated;
  readonly begin: (run: FitRun) => FitAlgorithm<Types>;
}

/**
 * Trains a model. Everything from the first byte read to the last factor is one graph of stages in one scope:
 * the five phases add their stages, and each stage starts when the stages that it needs have ended.
 */
export async function fitModel<Types extends FitTypes>(
  { about, input, check, rated, begin }: Fit<Types>,
  asked: Dataset,
  options: ContinuedFit,
): Promise<Model> {
  const { session } = asked;
  const context = session.context(options);
  // Not all devices support these parameters or the plan, so devices are opened and checked before anything
  // is read.
  if (options.plan !== undefined || dependsOnDevice(about.params)) {
    await session.opened(context.events);
    trainingDevice(session.device, context.executor, about.params);
  }
  await check?.(context);
  const sets = { ratings: asked, validation: options.validation };
  const { ratings, validation } = await foundSets(input, sets, context, rated);
  const train = async (scope: Scope, checkpoints: FitRun['checkpoints']): Promise<Model> => {
    using _ = scope.ctx.metrics.begin('plan');
    const started = performance.now();
    const given = options.plan && requirePlan(options.plan);
    const run = { scope, input, ratings, validation, options, given, checkpoints, started };
    const algorithm = begin(run);
    const read = readPhase(algorithm, run);
    const inspected = inspectPhase(algorithm, run, read);
    const plan = planPhase(algorithm, run, inspected);
    const trained = trainPhase(algorithm, run, inspected, plan);
    return await finishPhase(algorithm, run, inspected, plan, trained).result;
  };
  const capacityBytes = session.bounded ? dataBytes(session) : undefined;
  return followed(context, () =>
    Holdings.tidied(
      context,
      () =>
        withCheckpoints(options, about, context, (checkpoints) =>
          Scope.within(context, (scope) => train(scope, checkpoints), { capacityBytes }),
        ),
      session.tidies,
    ),
  );
}
