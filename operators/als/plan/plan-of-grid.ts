import { counted } from '../../../engine/format.ts';
import { PLAN_VERSION, type PhysicalPlan, unbound } from '../../../engine/plan/physical-plan.ts';
import { HOST } from '../../../engine/plan/place.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { loadStages } from '../../planner/load-stages.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import {
  blockBytes,
  blockLimit,
  loadingBytes as ratingLoadingBytes,
  partLoadingBytes,
  requireBindings,
  requireDeviceFit,
  spilledLoadingBytes,
} from '../../planner/sizes.ts';
import { contracts } from '../../tasks/tasks.ts';
import { speculatesWhereItFits } from '../../training/planned-speculation.ts';
import { rankingBytes } from '../../training/planned-measures.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { alsDataSets, estimatedSizes } from './data-sets.ts';
import { describeProblem, planReasons } from './description.ts';
import { equationStages } from './equations.ts';
import { type Side, sides, sumsOf, verticalParts } from './grid.ts';
import { fixStages, updateStage } from './half-iteration.ts';
import { endStages, measuring, startStages } from './phases.ts';
import { type AlsPlanOptions, type AlsProblem, alsProblem } from './problem.ts';
import { vectorStages } from './vectors.ts';

/** Bytes of factors that a thread makes a file's frame from, and the frame. */
const WRITTEN_BYTES = 32 << 20;

/**
 * The plan of one grid. A side that is fixed whole is gathered on all devices after it is solved, and the
 * other is solved by model parallelism (cuMF, section 4.2: p = 1); from a side that is fixed in parts the
 * other is solved by data parallelism (section 4.3). Throws CapacityError where it does not fit.
 *
 */
export function planOfGrid(
  profile: RatingsProfile,
  params: SizedAlsParams,
  devices: PlanDevices,
  choices?: AlsChoices,
  options: AlsPlanOptions = {},
): PhysicalPlan {
  const problem = alsProblem(profile, params, devices, choices, options);
  const {
    compute,
    host,
    device,
    grid,
    rows,
    testRatings,
    profile: { ratings: nz },
  } = problem;
  const plan = speculatesWhereItFits(
    {
      planVersion: PLAN_VERSION,
      algorithm: 'als',
      problem: describeProblem(problem),
      sizes: { ...rows, ratings: nz, ...(testRatings === undefined ? {} : { testRatings }) },
      params: { ...params },
      choices: { ...choices, ...(options.grid === undefined ? {} : { grid: options.grid }) },
      devices: compute.includes(host) ? compute : [...compute, host],
      datasets: alsDataSets(problem, estimatedSizes(problem)),
      load: alsLoadStages(problem),
      start: startStages(problem),
      // The Gram matrix of the new users serves the loss and the next round.
      round: (['items', 'users'] as const).flatMap((side) => [
        ...solvingStages(problem, side),
        ...fixStages(problem, side),
      ]),
      measure: measuring(problem),
      end: endStages(problem),
      rounds: params.maxIter,
      keep: { start: false, best: params.earlyStop !== undefined },
      ...(params.implicitPrefs ? {} : rankingBytes(params, { ...rows, ratings: nz, testRatings }, device)),
      reasons: planReasons(problem),
    },
    {
      called: 'iteration',
      params,
      compute,
      foreseen: sides.every((side) => grid[side].q === 1 && grid[side].ratings === 'device'),
    },
  );
  requireBindings(plan, {
    [counted(nz, 'rating')]: Math.ceil(
      (4 * nz) / Math.min(...sides.map((side) => grid[side].q * verticalParts(grid, side))),
    ),
  });
  const peak = peakOf(unbound(plan), contracts, plan.keep);
  const inFiles = sides.every((side) => grid[side].ratings === 'spill');
  const loadingBytes = inFiles
    ? partLoadingBytes(Math.ceil(nz / Math.min(...sides.map((side) => grid[side].q))))
    : nz > blockLimit.ratings
      ? ratingLoadingBytes(nz)
      : spilledLoadingBytes(nz);
  // At the end a copy of the parts of the factors, and what each thread writes at a time; ratings in memory
  // take more than these.
  const copied = 4 * (params.rank + 2) * (rows.users + rows.items);
  const endBytes = inFiles ? copied + Math.min(copied, host.parallelism * WRITTEN_BYTES) : 0;
  const hostBytes = Math.max(
    endBytes,
    loadingBytes + (testRatings === undefined ? 0 : blockBytes(rows.users, testRatings)),
    peak[HOST] ?? 0,
  );
  const copies = device.ownMemory ? 2 * 4 * params.rank * (rows.users + rows.items) : 0;
  // Ratings in parts that one device has for itself leave the host behind the first round, before the factors
  // come back.
  const leave =
    device.ownMemory &&
    compute.length === 1 &&
    nz > blockLimit.ratings &&
    sides.every((side) => grid[side].ratings === 'device');
  const whole: PhysicalPlan = {
    ...plan,
    memory: { ...peak, [HOST]: leave ? Math.max(hostBytes, copies) : hostBytes + copies },
  };
  requireDeviceFit(whole, 'SGD, whose blocks are staged where they do not fit');
  return whole;
}

/** The stages that solve the rows of a side. */
function solvingStages(problem: AlsProblem, side: Side): Stage[] {
  const sums = sumsOf(problem.grid, side);
  return sums === undefined
    ? [updateStage(problem, side)]
    : sums === 'vectors'
      ? vectorStages(problem, side)
      : equationStages(problem, side);
}

function alsLoadStages({ profile, rows, host }: AlsProblem): Stage[] {
  const { ratings: nz } = profile;
  return loadStages(profile, host.place, {
    kernel: 'counting sort, transpose',
    bytesWritten: blockBytes(rows.users, nz) + blockBytes(rows.items, nz),
    reasons: [],
  });
}
