import { formatBytes } from '../../engine/format.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import { HOST, SPILL, type Place } from '../../engine/plan/place.ts';
import type { DataSet, Stage } from '../../engine/plan/stages.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { rankingMetricOf } from '../params/common.ts';
import { loadingStages } from '../planner/load-stages.ts';
import { blockBytes, factorBytes, type RatingsProfile } from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { StoppingRule } from './training.ts';

/** Stage under which a run reports the time and bytes of its checkpoints. */
export const CHECKPOINT_STAGE = 'write-checkpoint';

/**
 * Bytes of the data sets that a plan's last stages move to the host: the factors. `files`: false to leave out
 * factors that stay in files.
 */
export function handedBytes(end: readonly Stage[], datasets: readonly DataSet[], files = true): number {
  const names = end.flatMap(({ work }) => (work.kind === 'exchange' && work.how === 'move' ? work.data : []));
  return datasets
    .filter(({ name }) => names.includes(name))
    .reduce(
      (sum, { columns = 1, parts }) =>
        sum +
        parts.reduce((all, { rows, at }) => all + (files || at[0] !== SPILL ? 4 * rows * columns : 0), 0),
      0,
    );
}

/**
 * Adds checkpoints every `every` rounds to a plan. They need memory for a copy of the factors on the host;
 * with early stop also for a copy of the best. Factors in files are kept there until they are written, and
 * read one part at a time.
 */
export function planCheckpoints(plan: PhysicalPlan, every: number | undefined): PhysicalPlan {
  if (every === undefined) return plan;
  const { end, datasets, devices, memory } = plan;
  const copies = plan.keep.best ? 2 : 1;
  const inMemory = copies * handedBytes(end, datasets, false);
  const written = copies * handedBytes(end, datasets);
  const inFiles = written - inMemory;
  const besides = inFiles > 0 ? ` and in files (${formatBytes(inFiles)})` : '';
  // If devices have their own memory, the plan already counts one copy of the factors on the host.
  const copied = inMemory - (devices[0].ownMemory ? handedBytes(end, datasets, false) : 0);
  const stage = {
    name: CHECKPOINT_STAGE,
    at: [HOST],
    work: { kind: 'grown', by: loadingStages.train } as const,
    bytesWritten: written,
    reasons: [
      `a copy of the factors in host memory (${formatBytes(inMemory)})${besides} is written while the next ` +
        'rounds run; the last two checkpoints are kept',
    ],
  };
  return {
    ...plan,
    checkpoint: { every, stage },
    memory: {
      ...memory,
      [HOST]: (memory[HOST] ?? 0) + copied + largestInFiles(plan),
      ...(inFiles > 0 && { [SPILL]: (memory[SPILL] ?? 0) + inFiles }),
    },
  };
}

/** Bytes of the largest part of the factors that is in a file; 0 if none is. */
function largestInFiles({ end, datasets }: PhysicalPlan): number {
  const parts = datasets.flatMap((set) => set.parts.map((part) => [{ ...set, parts: [part] }]));
  return Math.max(0, ...parts.map((one) => handedBytes(end, one) - handedBytes(end, one, false)));
}

/** True if a part of the factors has its home in a file. */
export function isInFiles({ phases: { end }, datasets }: BoundPlan): boolean {
  return handedBytes(end, datasets, false) < handedBytes(end, datasets);
}

/**
 * A device with its own memory ranks users in ranges. At most this number of users' rows is on it at the same
 * time.
 */
const RANKED_USERS = 3 * 65_536;

/**
 * Bytes at each place for the ranking metric of early stop, in addition to the plan's steps. A device that
 * computes in host memory needs both factor matrices with their biases; other devices need all items and some
 * users. Host memory needs the pairs and their ranks, and the training pairs again if training has rows in
 * another order (`relabelled`). 0 without such a metric, or if ranking is a step of the plan.
 */
export function rankingBytes(
  params: Parameters<typeof rankingMetricOf>[0] & { readonly rank: number; readonly biases: boolean },
  { users, items, ratings, testRatings }: Pick<RatingsProfile, 'users' | 'items' | 'ratings' | 'testRatings'>,
  { place, ownMemory, strideStep }: DeviceInfo,
  relabelled = false,
): Pick<PhysicalPlan, 'measureBytes'> {
  if (rankingMetricOf(params) === undefined || testRatings === undefined) return {};
  const rank = params.rank + (params.biases ? 2 : 0);
  const rows = items + (ownMemory ? Math.min(users, RANKED_USERS) : users);
  return {
    measureBytes: {
      [place]: factorBytes(rows, rank, strideStep),
      [HOST]: blockBytes(users, testRatings) + (relabelled ? 4 * (users + 1 + ratings) : 0),
    },
  };
}

/**
 * Corrects the plan's memory after a run: if every round was the best so far, early stop never kept an older
 * version of the factors.
 */
export function planAfterRun(
  plan: PhysicalPlan,
  bound: BoundPlan,
  { keptOlder }: { readonly keptOlder: boolean },
): PhysicalPlan {
  if (keptOlder || !plan.keep.best) return plan;
  const [most, taken] = [true, false].map((older) => peakOf(bound, contracts, plan.keep, { older }));
  const saved = (place: Place) =>
    (most[place] ?? 0) -
    (taken[place] ?? 0) +
    (place === HOST && plan.checkpoint ? handedBytes(plan.end, plan.datasets) : 0);
  return {
    ...plan,
    memory: Object.fromEntries(
      Object.entries(plan.memory).map(([place, bytes]) => [place, bytes - saved(place)]),
    ),
  };
}

export type PlanWithoutMemory = Omit<PhysicalPlan, 'memory'>;

/** Facts that decide, in addition to the plan, whether rounds are sent early. */
interface SpeculationProblem {
  readonly called: 'iteration' | 'epoch';
  readonly params: ConstructorParameters<typeof StoppingRule>[0] & { readonly maxIter: number };
  /** All devices that compute. */
  readonly compute: readonly DeviceInfo[];
  /**
   * True if rounds run wholly on the first device, and only a failure, never the errors of a round, can
   * change the next one.
   */
  readonly foreseen: boolean;
}

/**
 * If possible, plans that each round is sent before the errors of the previous one are known, to keep the
 * device busy. Requires that the only device works in order and has room for one more version of the factors,
 * and that no rule may end the run.
 */
export function speculatesWhereItFits(
  plan: PlanWithoutMemory,
  { called, params, compute, foreseen }: SpeculationProblem,
): PlanWithoutMemory {
  const [device] = compute;
  if (
    !foreseen ||
    compute.length > 1 ||
    !device.inOrder ||
    params.maxIter < 2 ||
    !StoppingRule.isForeseen(params) ||
    plan.datasets.some(({ derived }) => derived)
  )
    return plan;
  const speculating: PlanWithoutMemory = {
    ...plan,
    keep: { ...plan.keep, speculates: true },
    reasons: [
      ...plan.reasons,
      `an ${called} is sent to the device before the errors of the one before are known; the factors of that one stay until then`,
    ],
  };
  const peak = peakOf(unbound(speculating), contracts, speculating.keep)[device.place] ?? 0;
  return peak <= (device.capacityBytes ?? Number.POSITIVE_INFINITY) ? speculating : plan;
}
