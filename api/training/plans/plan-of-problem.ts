import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import { computeDevice, planDevices } from '../../../engine/run/devices.ts';
import type { AlsParams } from '../../../operators/als/als-params.ts';
import { chooseKernels } from '../../../operators/als/kernel-choices.ts';
import { alsDefaults, checkAlsParams } from '../../../operators/als/params.ts';
import { planAls } from '../../../operators/als/plan/plan-als.ts';
import { planFit } from '../../../operators/als/plan/ratings-home.ts';
import { assumedDevices } from '../../../operators/planner/device-rates.ts';
import { loadingNeed, requireBudget } from '../../../operators/planner/memory-budget.ts';
import type { RatingsProfile } from '../../../operators/planner/sizes.ts';
import { planTraining } from '../../../operators/sgd/fit.ts';
import { checkSgdParams, type SgdParams } from '../../../operators/sgd/params.ts';
import { planSgd } from '../../../operators/sgd/plan.ts';
import type { Session } from '../../session.ts';
import { chooseAlgorithm } from '../algorithm-choice.ts';
import { type CheckpointOptions, intervalOf } from '../checkpoints/checkpoint-options.ts';
import { trainingDevice } from '../training-device.ts';

/**
 * A training that is planned without its ratings, from their numbers, with the parameters of each algorithm
 * that may be chosen.
 */
export interface Problem {
  readonly profile: RatingsProfile;
  readonly algorithm: 'als' | 'sgd' | 'auto';
  readonly als: Partial<AlsParams>;
  readonly sgd: Partial<SgdParams>;
  readonly checkpoints?: CheckpointOptions;
}

/** A GPU that is only assumed: bytes of its memory, and the processor socket that it is attached to. */
export interface AssumedDevice {
  readonly bytes: number;
  readonly socket?: number;
}

/** Plans a problem for a session's devices. Throws CapacityError if it exceeds the memory budget. */
export async function planOfProblem(problem: Problem, session: Session): Promise<PhysicalPlan> {
  const { algorithm, profile } = problem;
  const { rank = alsDefaults.rank, cgSteps = alsDefaults.cgSteps, targetRmse } = problem.als;
  const choice =
    algorithm === 'auto'
      ? chooseAlgorithm(
          { ...profile, rank, cgSteps, targetRmse },
          computeDevice(session.context().executor).info,
        )
      : undefined;
  const planned =
    (choice?.algorithm ?? algorithm) === 'sgd'
      ? planOfSgd(problem, session)
      : await planOfAls(problem, session);
  return choice === undefined ? planned : { ...planned, reasons: [choice.reason, ...planned.reasons] };
}

/**
 * Plans a training for assumed devices. `hostBytes`: memory of the host, for ratings that the devices cannot
 * hold.
 */
export function planOfAssumed(
  { profile, algorithm, als, sgd }: Problem,
  devices: readonly AssumedDevice[],
  hostBytes: number | undefined,
): PhysicalPlan {
  const assumed = assumedDevices(
    devices.map(({ bytes }) => bytes),
    devices.some(({ socket }) => socket !== undefined) ? devices.map(({ socket = 0 }) => socket) : undefined,
  );
  if (algorithm === 'sgd') return planSgd(profile, checkSgdParams(sgd), assumed);
  return planAls(profile, checkAlsParams(als), assumed, undefined, {
    compares: true,
    ...(hostBytes === undefined ? {} : { hostBytes, ratings: ['device', 'host', 'spill'] }),
  });
}

function planOfSgd({ profile, sgd, checkpoints = {} }: Problem, session: Session): PhysicalPlan {
  const checked = checkSgdParams(sgd);
  const { executor } = session.context();
  trainingDevice(session.device, executor, checked);
  const plan = planTraining({ params: checked }, profile, planDevices(executor), {}, intervalOf(checkpoints));
  requireBudget(plan, {
    memoryBudget: session.memoryBudget,
    workers: session.workers,
    loading: loadingNeed(profile.ratings, false, session.workers, 'int32'),
  });
  return plan;
}

async function planOfAls(
  { profile, als, checkpoints = {} }: Problem,
  session: Session,
): Promise<PhysicalPlan> {
  const params = checkAlsParams(als);
  const context = session.context();
  const { executor } = trainingDevice(session.device, context.executor, params);
  const choices = await chooseKernels(profile, params, { ...context, executor });
  const { memoryBudget, workers } = session;
  const setting = {
    params,
    devices: planDevices(executor),
    budget: { memoryBudget, workers },
    mayBeInParts: true,
    interval: intervalOf(checkpoints),
  };
  return planFit(setting, profile, choices).plan;
}
