import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { BoundPlan } from '../../engine/plan/bound-plan.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { rankingMetricOf } from '../params/common.ts';
import { blockBytes, factorBytes } from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { handedBytes } from './planned-checkpoints.ts';

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
  {
    users,
    items,
    ratings,
    testRatings,
  }: {
    readonly users: number;
    readonly items: number;
    readonly ratings: number;
    readonly testRatings?: number | undefined;
  },
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
