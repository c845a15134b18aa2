import { counted } from '../../../engine/format.ts';
import { type LoadStage, PLAN_VERSION, type PhysicalPlan, unbound } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { loadStages } from '../../planner/load-stages.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import { blockBytes, requireBindings, requireDeviceFit, spilledLoadingBytes } from '../../planner/sizes.ts';
import { contracts } from '../../tasks/tasks.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { AlsParams } from '../params.ts';
import { alsDataSets } from './data-sets.ts';
import { describeProblem, planReasons } from './description.ts';
import { fixStages, updateStage } from './half-iteration.ts';
import { endStages, measuring, startStages } from './phases.ts';
import { type AlsPlanOptions, type AlsProblem, alsProblem } from './problem.ts';

/**
 * The physical plan of ALS: a pure function of profile, parameters and devices. Model parallelism (cuMF, section 4.2): Θ whole on
 * each device, X in q parts, p = 1; the parts of a side are gathered on all devices after each half-iteration. Throws CapacityError
 * when it does not fit, before anything is allocated.
 */
export function planAls(profile: RatingsProfile, params: AlsParams, devices: PlanDevices, choices?: AlsChoices, options: AlsPlanOptions = {}): PhysicalPlan {
  const problem = alsProblem(profile, params, devices, choices, options);
  const { compute, host, device, grid, rows, testRatings, profile: { ratings: nz } } = problem;
  const plan: Omit<PhysicalPlan, 'memory'> = {
    planVersion: PLAN_VERSION,
    algorithm: 'als',
    problem: describeProblem(problem),
    sizes: { ...rows, ratings: nz, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices: { ...choices, ...(options.grid === undefined ? {} : { grid: options.grid }) },
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets: alsDataSets(problem),
    load: alsLoadStages(problem),
    start: startStages(problem),
    // The Gram matrix of the new users serves the loss and the next round.
    round: [updateStage(problem, 'items'), ...fixStages(problem, 'items'), updateStage(problem, 'users'), ...fixStages(problem, 'users')],
    measure: measuring(problem),
    end: endStages(problem),
    rounds: params.maxIter,
    keep: { start: false, best: params.earlyStop !== undefined },
    reasons: planReasons(problem),
  };
  requireBindings(plan, { [counted(nz, 'rating')]: Math.ceil((4 * nz) / Math.min(grid.users.q, grid.items.q)) });
  const peak = peakOf(unbound(plan), contracts, plan.keep);
  const hostBytes = Math.max(spilledLoadingBytes(nz) + (testRatings === undefined ? 0 : blockBytes(rows.users, testRatings)), peak[HOST] ?? 0);
  const whole: PhysicalPlan = { ...plan, memory: { ...peak, [HOST]: hostBytes + (device.ownMemory ? 2 * 4 * params.rank * (rows.users + rows.items) : 0) } };
  requireDeviceFit(whole, 'SGD, whose blocks are staged where they do not fit');
  return whole;
}

function alsLoadStages({ profile, rows, host }: AlsProblem): LoadStage[] {
  const { ratings: nz } = profile;
  return loadStages(profile, host.place, { kernel: 'counting sort, transpose', bytesWritten: blockBytes(rows.users, nz) + blockBytes(rows.items, nz), reasons: [] });
}
