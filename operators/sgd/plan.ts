import type { PlanDevices } from '../../engine/run/devices.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { strideOf } from '../../engine/plan/bound-plan.ts';
import { PLAN_VERSION, type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { HOST } from '../../engine/plan/place.ts';
import { loadingStages, loadStages } from '../planner/load-stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import {
  blockBytes,
  buffersBeyondBinding,
  factorStride,
  fits,
  loadingBytes,
  spilledLoadingBytes,
  requireBindings,
  requireDeviceFit,
} from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { speculatesWhereItFits } from '../training/planned-speculation.ts';
import { rankingBytes } from '../training/planned-measures.ts';
import { layoutOf } from './bytes.ts';
import { bandsLeave, devicesOf, staysOnDevice } from './schedules/blocks-schedule.ts';
import { schedulesFor } from './schedules/choose-schedule.ts';
import { convergenceReport, dominantItem } from './schedules/convergence.ts';
import { estimatedSizes, sgdDataSets } from './data-sets.ts';
import { rankingReasons } from '../params/common.ts';
import { lambdasOf, type SgdParams, shrinkOf } from './params.ts';
import { beyondBlock, type SgdSchedule, VERSIONS } from './schedules/schedule.ts';
import { type SgdStages, sgdStages } from './stages.ts';

/** Facts beside the profile. */
export interface SgdPlanDetails {
  /** n_v of each item: makes the expected collisions exact. */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
  /** The model that is continued, as messages name it. */
  readonly start?: string;
  /** A schedule that was chosen before, in place of the choice. */
  readonly schedule?: SgdSchedule;
}

/** Features of a row of factors: with biases the bias and a 1 in front of the factors. */
export function sgdFeatures({ rank, biases }: Pick<SgdParams, 'rank' | 'biases'>): number {
  return rank + (biases ? 2 : 0);
}

/**
 * The physical plan of SGD: a pure function of profile, parameters and devices. Of the schedules that suit
 * them the first that fits is taken. An epoch steps a copy of the factors, so two versions of both sides
 * stand side by side, three with an early stop, or where an epoch is sent on speculation. Throws
 * CapacityError when none fits.
 *
 */
export function planSgd(
  profile: RatingsProfile,
  params: SgdParams,
  { compute, host }: PlanDevices,
  details: SgdPlanDetails = {},
): PhysicalPlan {
  const rejected: string[] = [];
  let last: PhysicalPlan | undefined;
  let tooLarge: string | undefined;
  for (const schedule of details.schedule ? [details.schedule] : schedulesFor(profile, params, compute)) {
    const devices = compute.slice(0, devicesOf(schedule));
    const refused = beyondBlock(schedule, profile.ratings);
    if (refused !== undefined) {
      tooLarge ??= `schedule ${schedule.kind} ${refused}`;
      rejected.push(`rejected: ${nameOf(schedule)} ${refused}`);
      continue;
    }
    last = planOf(profile, params, schedule, { compute: devices, host }, details, rejected);
    const beyond = buffersBeyondBinding(last, largestBuffer(profile, schedule));
    if (fits(last) && beyond.length === 0) return last;
    rejected.push(
      `rejected: ${nameOf(schedule)} ${beyond.length > 0 ? `needs ${formatBytes(beyond[0].bytes)} in one buffer for ${beyond[0].what}, and ${beyond[0].device.place} binds ${formatBytes(beyond[0].device.bindingBytes ?? 0)}` : lack(last)}`,
    );
  }
  if (last === undefined && tooLarge !== undefined)
    throw new CapacityError(tooLarge, {
      phase: 'plan',
      advice:
        compute.length > 1 ? 'Use one device, more of them, or ALS' : 'Leave the schedule out, or use ALS',
    });
  if (last === undefined) throw new Error('no schedule suits these devices');
  const schedule = scheduleOf(last);
  requireDeviceFit(
    last,
    schedule.deviceBlocks === undefined
      ? 'leave the schedule out: blocks are staged where they do not fit'
      : schedule.precision === 'f16'
        ? 'precision f32, which keeps no copies of half the width'
        : 'a part of the ratings',
  );
  requireBindings(last, largestBuffer(profile, schedule));
  return last;
}

/** The schedule that a plan of SGD was made with. */
export function scheduleOf({ choices }: Pick<PhysicalPlan, 'choices'>): SgdSchedule {
  return choices.schedule as unknown as SgdSchedule;
}

function nameOf({ kind, deviceBlocks, rowBands, columnBands }: SgdSchedule): string {
  if (deviceBlocks?.bandsADevice !== undefined)
    return `${rowBands} bands of rows with ${deviceBlocks.resident ? 'all blocks of ratings' : deviceBlocks.rowsStaged ? 'two blocks of ratings and their factors' : 'two blocks of ratings'} on the device`;
  return deviceBlocks === undefined
    ? `schedule ${kind}`
    : `${columnBands} segments of columns with ${deviceBlocks.resident ? 'all blocks of ratings' : 'two blocks of ratings'} on the device`;
}

function lack({ memory, devices }: PhysicalPlan): string {
  const device = devices.find(
    ({ place, capacityBytes }) => capacityBytes !== null && (memory[place] ?? 0) > capacityBytes,
  );
  return device === undefined
    ? 'does not fit'
    : `needs ${formatBytes(memory[device.place])} (${memory[device.place]} bytes), and ${device.place} has ${formatBytes(device.capacityBytes ?? 0)} (${device.capacityBytes} bytes)`;
}

function largestBuffer(
  { users, items, ratings }: RatingsProfile,
  schedule: SgdSchedule,
): Readonly<Record<string, number>> {
  const parts = schedule.deviceBlocks ? schedule.rowBands * schedule.columnBands : 1;
  return {
    [`${formatCount(Math.ceil(ratings / parts))} ratings`]: layoutOf(
      schedule,
      ratings,
      Math.max(users, items),
    ).bufferBytes,
  };
}

function planOf(
  profile: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  { compute, host }: PlanDevices,
  { itemCounts, userCounts, start }: SgdPlanDetails,
  rejected: readonly string[],
): PhysicalPlan {
  const { users: m, items: n, ratings: nz, testRatings } = profile;
  const [device] = compute;
  const convergence = convergenceReport(
    { users: m, items: n, ratings: nz, itemCounts, userCounts },
    schedule,
  );
  const layout = layoutOf(schedule, nz, Math.max(m, n));
  const datasets = sgdDataSets(estimatedSizes(profile, schedule), params, schedule, { compute, host });
  const epochReasons = [
    ...schedule.reasons,
    rateReason(params),
    convergence.text,
    ...[convergence.warning, dominantItem({ ratings: nz, itemCounts })].flatMap((warning) =>
      warning === undefined ? [] : [`WARNING: ${warning}`],
    ),
  ];
  const stages: SgdStages = sgdStages(profile, params, schedule, { compute, host }, datasets, {
    epoch: epochReasons,
    start: startReason(params, start),
  });
  const versionBytes = datasets
    .filter(({ columns, derived }) => columns !== undefined && !derived)
    .reduce(
      (sum, set) =>
        sum + set.parts.reduce((all, { rows }) => all + 4 * rows * strideOf(set, device.strideStep), 0),
      0,
    );
  const usual: Omit<PhysicalPlan, 'memory'> = {
    planVersion: PLAN_VERSION,
    algorithm: 'sgd',
    problem: describeProblem(profile, params),
    sizes: { users: m, items: n, ratings: nz, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices: { schedule: JSON.parse(JSON.stringify(schedule)) as JsonObject },
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets,
    load: [
      ...loadStages(profile, host.place, {
        kernel: 'relabel, counting sort',
        bytesWritten: blockBytes(Math.max(m, n), nz),
        reasons: [
          'ids are relabelled at random, so that bands of adjacent rows and columns are like any others; ratings are put on the scale of their deviation σ',
        ],
      }),
      ...layoutStages(layout, nz, host),
    ],
    ...stages,
    rounds: params.maxIter,
    keep: { start: true, best: params.earlyStop !== undefined },
    ...rankingBytes(params, profile, device, true),
    reasons: [
      ...shrinkReason(params),
      ...rankingReasons(params, 'epoch'),
      ...(params.biases
        ? [
            'biases: two more features, [β, 1] and [1, γ], whose 1s are never stepped; μ is taken off the ratings',
          ]
        : []),
      `${sgdFeatures(params)} features are stored with a stride of ${factorStride(sgdFeatures(params), device.strideStep)} floats (whole ${device.strideStep === 8 ? '256-bit groups' : `tiles of ${device.strideStep}`}; padding is 0)`,
      `an epoch steps a copy of the factors, ${formatBytes(versionBytes)}: one whose loss rises by a tenth, or is no number, is run again at half the rate, three times at most`,
      determinism(schedule),
      ...rejected,
    ],
  };
  // Two versions of the factors that do not fit alone need no walk of the steps, of which a large grid has
  // millions.
  const hopeless =
    schedule.deviceBlocks === undefined &&
    device.capacityBytes !== null &&
    VERSIONS * versionBytes > device.capacityBytes;
  // A bold driver's rates follow from the losses.
  const plan = hopeless
    ? usual
    : speculatesWhereItFits(usual, {
        called: 'epoch',
        params,
        compute,
        foreseen:
          schedule.tile !== undefined &&
          schedule.deviceBlocks === undefined &&
          !schedule.inBands &&
          params.rate !== 'bold',
      });
  const peak: Readonly<Record<string, number>> = hopeless
    ? { [device.place]: VERSIONS * versionBytes }
    : peakOf(unbound(plan), contracts, plan.keep);
  // Copies of a device's factors: the start or the last one, and the result. Those that lie in host memory
  // are no copies until a later epoch replaces them.
  const copies = device.ownMemory
    ? (staysOnDevice(schedule).rows ? 2 : 1) * 4 * sgdFeatures(params) * (m + n)
    : 0;
  // Bands are sorted while there are no factors yet, and may have left when these come back.
  const running = peak[HOST] ?? 0;
  const hostBytes = schedule.inBands
    ? Math.max(
        loadingBytes(nz),
        running,
        running + copies - (bandsLeave(schedule, device) ? blockBytes(Math.max(m, n), nz) : 0),
      )
    : Math.max(spilledLoadingBytes(nz), running) + copies;
  return { ...plan, memory: { ...peak, [HOST]: Math.ceil(hostBytes) } };
}

/**
 * The stage that lays the ratings out in front of the steps; a GPU lays tiles and waves out by itself in the
 * first epoch.
 */
function layoutStages(
  { name, kernel, where, tasks, bytes }: ReturnType<typeof layoutOf>,
  nz: number,
  { place }: DeviceInfo,
): PhysicalPlan['load'] {
  return where === 'device'
    ? []
    : [
        {
          name,
          at: [place],
          work: { kind: 'grown', by: loadingStages.train },
          kernel,
          ...(tasks === undefined ? {} : { tasks }),
          bytesRead: 8 * nz,
          bytesWritten: bytes,
        },
      ];
}

function startReason({ biases }: SgdParams, start: string | undefined): string {
  if (start !== undefined)
    return `training goes on from ${start}; new users and items start at their least-squares rows about the mean of those that it has`;
  return `Gaussian factors keyed by seed and external id, small beside the ratings${biases ? '' : ', shifted so that products begin at the mean rating'}`;
}

/** The regularization beside λ. */
function shrinkReason(params: SgdParams): string[] {
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

function rateReason({ rate, learningRate: alpha, decay }: SgdParams): string {
  const form = {
    paper: `γ_t = ${alpha} / (1 + ${decay} t^1.5), t = 0, 1, .. (cuMF_SGD)`,
    constant: `γ = ${alpha}`,
    bold: `γ = ${alpha} at first, then 5 % more after an epoch whose loss fell and half after one whose loss rose`,
    adagrad: `${alpha} / √(1 + G) with a sum G of squared gradients for each user and item`,
  }[rate];
  return `rate ${rate}: ${form}, in units of 1 / σ`;
}

function determinism(schedule: SgdSchedule): string {
  const { kind, rowBands, columnBands, precision, deviceBlocks } = schedule;
  if (deviceBlocks)
    return `blocks: ${devicesOf(schedule) > 1 ? 'those of different devices share no row and no column; ' : ''}inside a block steps of different teams meet as they happen to, so no two runs give the same bits`;
  if (kind === 'hogwild' || kind === 'tile')
    return `${kind}: steps of different workers meet as they happen to, so no two runs give the same bits`;
  if (precision !== undefined)
    return `a wave follows the other in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits on such a GPU`;
  return `blocks that share a band run in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits`;
}

function describeProblem(
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
