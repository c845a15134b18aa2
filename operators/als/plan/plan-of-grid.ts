import { counted } from '../../../engine/format.ts';
import { PLAN_VERSION, type PhysicalPlan, unbound } from '../../../engine/plan/physical-plan.ts';
import { HOST, SPILL } from '../../../engine/plan/place.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { loadStages } from '../../planner/load-stages.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import { blockBytes, requireBindings, requireDeviceFit } from '../../planner/sizes.ts';
import { contracts } from '../../tasks/tasks.ts';
import { type PlanWithoutMemory, speculatesWhereItFits } from '../../training/planned-speculation.ts';
import { rankingBytes } from '../../training/planned-measures.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { alsDataSets, estimatedSizes } from './data-sets.ts';
import { describeProblem, planReasons } from './description.ts';
import { equationStages } from './equations.ts';
import { type Side, sides, sumsOf, verticalParts } from './grid.ts';
import { fixStages, updateStage } from './half-iteration.ts';
import { hostMemory, keptFileBytes } from './host-memory.ts';
import { measureStagesOf } from './measure-stages.ts';
import { endStages, startStages } from './phases.ts';
import { type AlsPlanOptions, type AlsProblem, alsProblem } from './problem.ts';
import { vectorStages } from './vectors.ts';

/**
 * The plan of one grid. If a side is fixed as a whole, every device gets a copy of it after it was solved,
 * and the other side is solved by model parallelism (cuMF, section 4.2: p = 1). If it is fixed in parts, the
 * other side is solved by data parallelism (section 4.3). Throws CapacityError if the plan does not fit.
 */
export function planOfGrid(
  profile: RatingsProfile,
  params: SizedAlsParams,
  devices: PlanDevices,
  choices?: AlsChoices,
  options: AlsPlanOptions = {},
): PhysicalPlan {
  const problem = alsProblem(profile, params, devices, choices, options);
  const { compute, grid } = problem;
  const plan = speculatesWhereItFits(
    planOfStages(problem, { ...choices, ...(options.grid === undefined ? {} : { grid: options.grid }) }),
    {
      called: 'iteration',
      params,
      compute,
      foreseen: sides.every((side) => grid[side].q === 1 && grid[side].ratings === 'device'),
    },
  );
  const nz = problem.profile.ratings;
  const blocks = Math.min(...sides.map((side) => grid[side].q * verticalParts(grid, side)));
  requireBindings(plan, { [counted(nz, 'rating')]: Math.ceil((4 * nz) / blocks) });
  const peak = peakOf(unbound(plan), contracts, plan.keep);
  const memory = {
    ...peak,
    [HOST]: hostMemory(problem, peak[HOST]),
    ...(peak[SPILL] !== undefined && { [SPILL]: peak[SPILL] + keptFileBytes(problem) }),
  };
  const whole = { ...plan, memory };
  requireDeviceFit(whole, 'SGD, whose blocks are staged where they do not fit');
  return whole;
}

/** The plan without `memory`, which is computed afterwards by simulating the plan's steps. */
function planOfStages(problem: AlsProblem, choices: PhysicalPlan['choices']): PlanWithoutMemory {
  const { compute, host, device, rows, testRatings, params } = problem;
  const { ratings } = problem.profile;
  return {
    planVersion: PLAN_VERSION,
    algorithm: 'als',
    problem: describeProblem(problem),
    sizes: { ...rows, ratings, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices,
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets: alsDataSets(problem, estimatedSizes(problem)),
    load: alsLoadStages(problem),
    start: startStages(problem),
    // The Gram matrix of the new users (implicit data) is used twice: for this round's loss, and for solving
    // the items of the next round.
    round: (['items', 'users'] as const).flatMap((side) => [
      ...solvingStages(problem, side),
      ...fixStages(problem, side),
    ]),
    measure: measureStagesOf(problem),
    end: endStages(problem),
    rounds: params.maxIter,
    keep: { start: false, best: params.earlyStop !== undefined },
    ...(params.implicitPrefs ? {} : rankingBytes(params, { ...rows, ratings, testRatings }, device)),
    reasons: planReasons(problem),
  };
}

/** Stages that solve the rows of a side. */
function solvingStages(problem: AlsProblem, side: Side): Stage[] {
  const sums = sumsOf(problem.grid, side);
  return sums === undefined
    ? [updateStage(problem, side)]
    : sums === 'equations'
      ? equationStages(problem, side)
      : vectorStages(problem, side);
}

function alsLoadStages({ profile, rows, host }: AlsProblem): Stage[] {
  const { ratings: nz } = profile;
  return loadStages(profile, host.place, {
    kernel: 'counting sort, transpose',
    bytesWritten: blockBytes(rows.users, nz) + blockBytes(rows.items, nz),
    reasons: [],
  });
}
