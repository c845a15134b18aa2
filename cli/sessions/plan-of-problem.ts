import { loadingNeed, requireBudget } from '../../api/training/plans/memory-budget.ts';
import { ratingsHome } from '../../api/training/plans/ratings-home.ts';
import { trainingDevice } from '../../api/training/training-device.ts';
import { intervalOf } from '../../api/training/checkpoints/checkpoint-options.ts';
import type { Session } from '../../api/session.ts';
import { computeDevice, planDevices } from '../../engine/run/devices.ts';
import type { PhysicalPlan } from '../../index.ts';
import { chooseAlgorithm } from '../../operators/planner/algorithm-choice.ts';
import { alsDefaults, checkAlsParams } from '../../operators/als/params.ts';
import { planAls } from '../../operators/als/plan/plan-als.ts';
import type { RatingsProfile } from '../../operators/planner/profile.ts';
import { chooseKernels } from '../../operators/als/kernel-choices.ts';
import { checkSgdParams } from '../../operators/sgd/params.ts';
import { planSgd } from '../../operators/sgd/plan.ts';
import { planCheckpoints } from '../../operators/training/planned-checkpoints.ts';
import { UsageError } from '../../engine/errors.ts';
import { parseSize } from '../../api/sizes.ts';
import { assumedDevices } from '../../operators/planner/assumed-devices.ts';
import { flagName } from '../options/option.ts';
import { algorithmOf } from '../options/training/check-algorithm.ts';
import { givenParams } from '../options/training/param-options.ts';
import type { TrainingValues } from '../options/training/training-options.ts';

/** Plans a problem by its counts alone. Throws CapacityError where it does not fit the memory budget. */
export async function planOfProblem(
  profile: RatingsProfile,
  values: TrainingValues,
  given: ReadonlySet<string>,
  session: Session,
): Promise<PhysicalPlan> {
  const asked = algorithmOf(values);
  const { rank = alsDefaults.rank, cgSteps = alsDefaults.cgSteps, targetRmse } = values;
  const choice =
    asked === 'auto'
      ? chooseAlgorithm(
          { ...profile, rank, cgSteps, targetRmse },
          computeDevice(session.context().executor).info,
        )
      : undefined;
  const planned =
    (choice?.algorithm ?? asked) === 'sgd'
      ? planOfSgd(profile, values, given, session)
      : await planOfAls(profile, values, given, session);
  return choice === undefined ? planned : { ...planned, reasons: [choice.reason, ...planned.reasons] };
}

/** Plans a problem by its counts, for devices that are not there: "4x12GB", or their memory one by one. */
export function planOfAssumed(
  profile: RatingsProfile,
  values: TrainingValues,
  given: ReadonlySet<string>,
  devices: string,
): PhysicalPlan {
  const idle = (['device', 'deviceMemory', 'workers', 'fakeDevices'] as const).find((name) =>
    given.has(name),
  );
  if (idle !== undefined)
    throw new UsageError(`--${flagName(idle)} cannot act with --devices`, {
      advice: 'Leave one of them out',
    });
  const each = devices.split(',').flatMap(devicesOf);
  const assumed = assumedDevices(
    each.map(({ bytes }) => bytes),
    each.some(({ socket }) => socket !== undefined) ? each.map(({ socket = 0 }) => socket) : undefined,
  );
  const asked = algorithmOf(values);
  if (asked === 'sgd') return planSgd(profile, checkSgdParams(givenParams('sgd', values, given)), assumed);
  const hostBytes = given.has('memoryBudget') ? values.memoryBudget : undefined;
  return planAls(profile, checkAlsParams(givenParams('als', values, given)), assumed, undefined, {
    compares: true,
    ...(hostBytes === undefined ? {} : { hostBytes, ratings: ['device', 'host', 'spill'] }),
  });
}

/** Most devices of a plan. */
const MOST_DEVICES = 64;

/** "4x12GB", or "2x4x12GB" of two sockets with four devices each. */
function devicesOf(text: string): { readonly bytes: number; readonly socket?: number }[] {
  const [, sockets, each = '1', size] =
    /^\s*(?:(\d{1,3})\s*x\s*(?=\d{1,3}\s*x))?(?:(\d{1,3})\s*x)?\s*(.+)$/i.exec(text) ?? [];
  const count = Number(each) * Number(sockets ?? 1);
  if (size !== undefined && /^[\d.]+$/.test(size))
    throw new UsageError(`--devices needs a unit of memory behind ${size}`, {
      advice: 'Write 4x12GB, or 4x12GiB',
    });
  if (size === undefined || count < 1 || count > MOST_DEVICES)
    throw new UsageError(`--devices must be devices with their memory, got ${JSON.stringify(text)}`, {
      advice: `Give up to ${MOST_DEVICES} of them, such as 4x12GB, 80GB,141GB, or 2x4x12GB for two sockets`,
    });
  return Array.from({ length: count }, (_, n) => ({
    bytes: parseSize(size, '--devices'),
    ...(sockets === undefined ? {} : { socket: Math.floor(n / Number(each)) }),
  }));
}

function planOfSgd(
  profile: RatingsProfile,
  values: TrainingValues,
  given: ReadonlySet<string>,
  session: Session,
): PhysicalPlan {
  const checked = checkSgdParams(givenParams('sgd', values, given));
  const { executor } = session.context();
  trainingDevice(session.device, executor, checked);
  const plan = planCheckpoints(planSgd(profile, checked, planDevices(executor)), intervalOf(values));
  requireBudget(plan, {
    memoryBudget: session.memoryBudget,
    workers: session.workers,
    loading: loadingNeed(profile.ratings, false, session.workers, 'int32'),
  });
  return plan;
}

async function planOfAls(
  profile: RatingsProfile,
  values: TrainingValues,
  given: ReadonlySet<string>,
  session: Session,
): Promise<PhysicalPlan> {
  const params = checkAlsParams(givenParams('als', values, given));
  const context = session.context();
  const { executor } = trainingDevice(session.device, context.executor, params);
  const choices = await chooseKernels(profile, params, { ...context, executor });
  return ratingsHome(
    true,
    (grid) =>
      planCheckpoints(planAls(profile, params, planDevices(executor), choices, grid), intervalOf(values)),
    profile.ratings,
    session,
  ).plan;
}
