import { sgdTraining } from '../../api/fit-sgd.ts';
import { trainingDevice } from '../../api/training-device.ts';
import type { Session } from '../../api/session.ts';
import { computeDevice } from '../../engine/devices.ts';
import type { PhysicalPlan } from '../../index.ts';
import { chooseAlgorithm } from '../../operators/planner/algorithm-choice.ts';
import { alsDefaults, checkAlsParams } from '../../operators/als/params.ts';
import { devicePlan, planAls, planDevices, type RatingsProfile } from '../../operators/als/plan.ts';
import { chooseKernels } from '../../operators/als/kernel-choices.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';
import { planSgd } from '../../operators/sgd/plan.ts';
import { algorithmOf } from '../options/check-algorithm.ts';
import type { TrainingValues } from '../options/training-options.ts';
import { alsParams, sgdParams } from './trainer.ts';

/** Plans a problem by its counts alone. */
export async function planOfProblem(profile: RatingsProfile, values: TrainingValues, given: ReadonlySet<string>, session: Session): Promise<PhysicalPlan> {
  const asked = algorithmOf(values);
  const { rank, cgSteps, targetRmse } = values;
  const choice = asked === 'auto' ? chooseAlgorithm({ ...profile, rank, cgSteps: cgSteps ?? alsDefaults.cgSteps, targetRmse }, devicePlan(computeDevice(session.executor))) : undefined;
  const physical = (choice?.algorithm ?? asked) === 'sgd' ? planOfSgd(profile, values, given, session) : await planOfAls(profile, values, session);
  return choice === undefined ? physical : { ...physical, reasons: [choice.reason, ...physical.reasons] };
}

function planOfSgd(profile: RatingsProfile, values: TrainingValues, given: ReadonlySet<string>, session: Session): PhysicalPlan {
  const checked = checkSgdParams(sgdParams(values, given));
  const { device, host, others } = planDevices(sgdTraining(session, checked).executor);
  return planSgd(profile, checked, device, { host, others });
}

async function planOfAls(profile: RatingsProfile, values: TrainingValues, session: Session): Promise<PhysicalPlan> {
  const params = checkAlsParams(alsParams(values));
  const { executor } = trainingDevice(session, params);
  const { device, host } = planDevices(executor);
  return planAls(profile, params, device, { host, choices: await chooseKernels(computeDevice(executor), profile, params) });
}
