/** Words of SGD's plans: names of schedules, reasons, and the problem. */
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { PhysicalPlan } from '../../engine/plan/physical-plan.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { lambdasOf, type SgdParams, shrinkOf } from './params.ts';
import { devicesOf } from './schedules/blocks-schedule.ts';
import type { SgdSchedule } from './schedules/schedule.ts';

export function nameOf({ kind, deviceBlocks, rowBands, columnBands }: SgdSchedule): string {
  if (deviceBlocks?.bandsADevice !== undefined)
    return `${rowBands} bands of rows with ${deviceBlocks.resident ? 'all blocks of ratings' : deviceBlocks.rowsStaged ? 'two blocks of ratings and their factors' : 'two blocks of ratings'} on the device`;
  return deviceBlocks === undefined
    ? `schedule ${kind}`
    : `${columnBands} segments of columns with ${deviceBlocks.resident ? 'all blocks of ratings' : 'two blocks of ratings'} on the device`;
}

export function lack({ memory, devices }: PhysicalPlan): string {
  const device = devices.find(
    ({ place, capacityBytes }) => capacityBytes !== null && (memory[place] ?? 0) > capacityBytes,
  );
  return device === undefined
    ? 'does not fit'
    : `needs ${formatBytes(memory[device.place])} (${memory[device.place]} bytes), and ${device.place} has ${formatBytes(device.capacityBytes ?? 0)} (${device.capacityBytes} bytes)`;
}

export function startReason({ biases }: SgdParams, start: string | undefined): string {
  if (start !== undefined)
    return `training goes on from ${start}; new users and items start at their least-squares rows about the mean of those that it has`;
  return `Gaussian factors keyed by seed and external id, small beside the ratings${biases ? '' : ', shifted so that products begin at the mean rating'}`;
}

/** The regularization beside λ. */
export function shrinkReason(params: SgdParams): string[] {
  const { users, items } = shrinkOf(params);
  const parts = [
    users.offset === 0 ? [] : [`factors by 1 + ${users.offset} γ`],
    users.damping === 0 && items.damping === 0
      ? []
      : [`biases of users and items by 1 + ${users.damping} γ and 1 + ${items.damping} γ`],
  ].flat();
  return parts.length === 0
    ? []
    : [
        `an epoch of rate γ first divides ${parts.join(', ')}: what the offset o of λ n + o and the damping of biases take in an epoch, for any number of ratings of a row`,
      ];
}

export function rateReason({ rate, learningRate: alpha, decay }: SgdParams): string {
  const form = {
    paper: `γ_t = ${alpha} / (1 + ${decay} t^1.5), t = 0, 1, .. (cuMF_SGD)`,
    constant: `γ = ${alpha}`,
    bold: `γ = ${alpha} at first, then 5 % more after an epoch whose loss fell and half after one whose loss rose`,
    adagrad: `${alpha} / √(1 + G) with a sum G of squared gradients for each user and item`,
  }[rate];
  return `rate ${rate}: ${form}, in units of 1 / σ`;
}

export function determinism(schedule: SgdSchedule): string {
  const { kind, rowBands, columnBands, precision, deviceBlocks } = schedule;
  if (deviceBlocks)
    return `blocks: ${devicesOf(schedule) > 1 ? 'those of different devices share no row and no column; ' : ''}inside a block steps of different teams meet as they happen to, so no two runs give the same bits`;
  if (kind === 'hogwild' || kind === 'tile')
    return `${kind}: steps of different workers meet as they happen to, so no two runs give the same bits`;
  if (precision !== undefined)
    return `a wave follows the other in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits on such a GPU`;
  return `blocks that share a band run in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits`;
}

export function describeProblem(
  { users, items, ratings, testRatings }: RatingsProfile,
  params: SgdParams,
): JsonObject {
  const { users: lambdaUsers, items: lambdaItems } = lambdasOf(params);
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank k': params.biases ? `${params.rank} and biases` : params.rank,
    λ: lambdaUsers === lambdaItems ? lambdaUsers : `${lambdaUsers} for users, ${lambdaItems} for items`,
    epochs: params.maxIter,
    seed: params.seed,
  };
}
