import { CapacityError } from '../../engine/errors.ts';
import { formatBytes, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { strideOf } from '../../engine/plan/bound-plan.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { type PhysicalPlan, PLAN_VERSION, unbound } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import type { PlanDevices } from '../../engine/run/devices.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { rankWarnings } from '../evaluation/model-warnings.ts';
import { rankingReasons } from '../params/common.ts';
import { loadingStages, loadStages, taskStage } from '../planner/load-stages.ts';
import {
  type RatingsProfile,
  buffersBeyondBinding,
  requireBindings,
  requireDeviceFit,
  blockBytes,
  factorBytes,
  loadingBytes,
  spilledLoadingBytes,
  factorStride,
} from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { type PlanWithoutMemory, speculatesWhereItFits, rankingBytes } from '../training/planned-training.ts';
import { estimatedSizes, type SgdDataSet, sgdDataSets, steppedMatrices } from './data-sets.ts';
import { type SgdParams, lambdasOf, shrinkOf } from './params.ts';
import { schedulesFor } from './schedules/choose-schedule.ts';
import { convergenceReport, dominantItem } from './schedules/convergence.ts';
import { devicesOf, bandsLeave, staysOnDevice } from './schedules/gpu-schedules.ts';
import { beyondBlock, type SgdSchedule, VERSIONS } from './schedules/schedule.ts';
import {
  type SgdPlanDetails,
  type SgdProblem,
  sgdProblem,
  measuringStages,
  batchOrder,
  roundStages,
} from './stages.ts';

/**
 * Makes the physical plan of SGD: a pure function of profile, parameters and devices. It takes the first
 * schedule, in the order of schedulesFor, that fits into memory. Throws CapacityError if none does.
 */
export function planSgd(
  profile: RatingsProfile,
  params: SgdParams,
  { compute, host }: PlanDevices,
  details: SgdPlanDetails = {},
): PhysicalPlan {
  const rejected: string[] = [];
  let last: { readonly problem: SgdProblem; readonly plan: PhysicalPlan } | undefined;
  let tooLarge: string | undefined;
  for (const schedule of details.schedule ? [details.schedule] : schedulesFor(profile, params, compute)) {
    let reason = beyondBlock(schedule, profile.ratings);
    if (reason === undefined) {
      const devices = compute.slice(0, devicesOf(schedule));
      const problem = sgdProblem({ profile, params, schedule, details, compute: devices, host });
      last = { problem, plan: planOfSchedule(problem, rejected) };
      reason = lackOf(last.plan, largestBuffer(problem));
      if (reason === undefined) return last.plan;
    } else {
      tooLarge ??= `schedule ${schedule.kind} ${reason}`;
    }
    rejected.push(`rejected: ${nameOf(schedule)} ${reason}`);
  }
  if (last !== undefined) return requireFit(last.problem, last.plan);
  if (tooLarge === undefined) throw new Error('no schedule suits these devices');
  const advice =
    compute.length > 1 ? 'Use one device, more of them, or ALS' : 'Leave the schedule out, or use ALS';
  throw new CapacityError(tooLarge, { phase: 'plan', advice });
}

/** The schedule of a plan of SGD. */
export function scheduleOf({ choices }: Pick<PhysicalPlan, 'choices'>): SgdSchedule {
  return choices.schedule as unknown as SgdSchedule;
}

function nameOf({ kind, deviceBlocks, rowBands, columnBands }: SgdSchedule): string {
  if (deviceBlocks === undefined) return `schedule ${kind}`;
  const { bandsADevice, resident, rowsStaged } = deviceBlocks;
  const cut = bandsADevice === undefined ? `${columnBands} segments of columns` : `${rowBands} bands of rows`;
  const blocks = resident ? 'all blocks of ratings' : 'two blocks of ratings';
  return `${cut} with ${blocks}${rowsStaged ? ' and their factors' : ''} on the device`;
}

/** The reason why a plan does not fit into memory; undefined if it fits. */
function lackOf(plan: PhysicalPlan, largest: Readonly<Record<string, number>>): string | undefined {
  const [beyond] = buffersBeyondBinding(plan, largest);
  if (beyond !== undefined) {
    const { what, bytes, device } = beyond;
    return `needs ${formatBytes(bytes)} in one buffer for ${what}, and ${device.place} binds ${formatBytes(device.bindingBytes ?? 0)}`;
  }
  for (const { place, capacityBytes } of plan.devices) {
    const bytes = plan.memory[place] ?? 0;
    if (capacityBytes !== null && bytes > capacityBytes)
      return `needs ${formatBytes(bytes)} (${bytes} bytes), and ${place} has ${formatBytes(capacityBytes)} (${capacityBytes} bytes)`;
  }
  return undefined;
}

/** Returns the plan. Throws CapacityError if it does not fit. */
function requireFit(problem: SgdProblem, plan: PhysicalPlan): PhysicalPlan {
  const { deviceBlocks, precision } = problem.schedule;
  const smaller =
    precision === 'f16' ? 'precision f32, which keeps no copies of half the width' : 'a part of the ratings';
  requireDeviceFit(
    plan,
    deviceBlocks === undefined ? 'leave the schedule out: blocks are staged where they do not fit' : smaller,
  );
  requireBindings(plan, largestBuffer(problem));
  return plan;
}

/** Bytes of the largest buffer of ratings, by its description. */
function largestBuffer({ profile, schedule, layout }: SgdProblem): Readonly<Record<string, number>> {
  const parts = schedule.deviceBlocks ? schedule.rowBands * schedule.columnBands : 1;
  return { [`${formatCount(Math.ceil(profile.ratings / parts))} ratings`]: layout.bufferBytes };
}

/**
 * The plan of one schedule (order of the ratings). An epoch updates a copy of the factors, so memory holds
 * two versions of both sides. It holds three with early stop, or if an epoch is started before the loss of
 * the previous one is known. `rejected`: reasons against other schedules.
 */
function planOfSchedule(problem: SgdProblem, rejected: readonly string[]): PhysicalPlan {
  const { profile, params, schedule, compute, host, device } = problem;
  const { users, items, ratings, testRatings } = profile;
  const datasets = sgdDataSets(estimatedSizes(profile, schedule), params, schedule, { compute, host });
  const bytes = versionBytes(datasets, device);
  const plan: PlanWithoutMemory = {
    planVersion: PLAN_VERSION,
    algorithm: 'sgd',
    problem: describeProblem(problem),
    sizes: { users, items, ratings, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices: { schedule: JSON.parse(JSON.stringify(schedule)) as JsonObject },
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets,
    load: sgdLoadStages(problem),
    ...sgdStages(problem, datasets),
    rounds: params.maxIter,
    keep: { start: true, best: params.earlyStop !== undefined },
    ...rankingBytes(params, profile, device, true),
    reasons: [...planReasons(problem, bytes), ...rejected],
  };
  // If two versions of the factors alone do not fit, the peak memory is not computed from the plan's steps: a
  // large grid has millions of them.
  const least = VERSIONS * bytes;
  if (schedule.deviceBlocks === undefined && device.capacityBytes !== null && least > device.capacityBytes)
    return withMemory(problem, plan, { [device.place]: least });
  // An epoch may be sent before the loss of the previous one is known only if one GPU steps all ratings by
  // tiles, and not with the rate `bold`, which depends on that loss.
  const foreseen =
    schedule.tile !== undefined &&
    schedule.deviceBlocks === undefined &&
    !schedule.inBands &&
    params.rate !== 'bold';
  const sent = speculatesWhereItFits(plan, { called: 'epoch', params, compute, foreseen });
  return withMemory(problem, sent, peakOf(unbound(sent), contracts, sent.keep));
}

/** Bytes of one version of the matrices that an epoch updates: factors, and AdaGrad's sums. */
function versionBytes(datasets: readonly SgdDataSet[], { strideStep }: DeviceInfo): number {
  return datasets
    .filter(({ columns, derived }) => columns !== undefined && !derived)
    .flatMap((set) => set.parts.map(({ rows }) => 4 * rows * strideOf(set, strideStep)))
    .reduce((sum, bytes) => sum + bytes, 0);
}

/** Adds `memory` to the plan. `peak`: peak bytes of its steps at each place. */
function withMemory(
  { profile: { users, items, ratings }, schedule, device, features }: SgdProblem,
  plan: PlanWithoutMemory,
  peak: PhysicalPlan['memory'],
): PhysicalPlan {
  const running = peak[HOST] ?? 0;
  // Factors on a device have copies in host memory: the initial or last saved ones, and the result. Factors
  // that are in host memory themselves need no copy until a later epoch replaces them.
  const versions = device.ownMemory ? (staysOnDevice(schedule).rows ? 2 : 1) : 0;
  const copies = versions * 4 * features * (users + items);
  // If ratings are in bands of rows, they are sorted before factors exist, and may be freed before the
  // factors are copied back.
  const left = bandsLeave(schedule, device) ? blockBytes(Math.max(users, items), ratings) : 0;
  const hostBytes = schedule.inBands
    ? Math.max(loadingBytes(ratings), running, running + copies - left)
    : Math.max(spilledLoadingBytes(ratings), running) + copies;
  return { ...plan, memory: { ...peak, [HOST]: Math.ceil(hostBytes) } };
}

/**
 * Stages that load the ratings and bring them into the layout of the schedule. For the schedules `tile` and
 * `wavefront`, a GPU makes the layout itself in the first epoch.
 */
function sgdLoadStages({ profile, host: { place }, layout }: SgdProblem): Stage[] {
  const { users, items, ratings } = profile;
  const { name, kernel, where, tasks, bytes } = layout;
  const stages = loadStages(profile, place, {
    kernel: 'relabel, counting sort',
    bytesWritten: blockBytes(Math.max(users, items), ratings),
    reasons: [
      'ids are relabelled at random, so that all bands of rows and columns are alike; ratings are ' +
        'divided by their standard deviation σ',
    ],
  });
  if (where === 'device') return stages;
  const layOut: Stage = {
    name,
    at: [place],
    work: { kind: 'grown', by: loadingStages.train },
    kernel,
    ...(tasks === undefined ? {} : { tasks }),
    bytesRead: 8 * ratings,
    bytesWritten: bytes,
  };
  return [...stages, layOut];
}

/**
 * All stages of a run of SGD. Parameters that depend on the ratings are added when the plan is bound to them.
 */
function sgdStages(
  problem: SgdProblem,
  datasets: readonly SgdDataSet[],
): Pick<PhysicalPlan, 'start' | 'round' | 'measure' | 'end'> {
  const data = steppedMatrices(problem.params.rate === 'adagrad').map(({ name }) => name);
  return {
    start: startStages(problem, datasets),
    round: roundStages({ ...problem, epoch: epochStage(problem) }),
    measure: measuringStages(problem),
    end: [
      {
        name: 'fetch-factors',
        at: problem.rowPlaces,
        work: { kind: 'exchange', how: 'move', data, to: 'host' },
      },
    ],
  };
}

/** Stages before the first epoch: send the ratings that stay on devices, and draw the factors. */
function startStages(problem: SgdProblem, datasets: readonly SgdDataSet[]): Stage[] {
  const { profile, params, schedule, compute, host, rowPlaces } = problem;
  const { deviceBlocks, columnBands, kind } = schedule;
  const stages: Stage[] = [];
  if (deviceBlocks === undefined || deviceBlocks.resident) {
    const placed = datasets.filter(({ given, parts }) => given && parts[0].at.length > 1);
    const data = placed.map(({ name }) => name);
    stages.push({
      name: 'place-ratings',
      at: compute.map(({ place }) => place),
      work: { kind: 'exchange', how: 'move', data, to: 'places' },
    });
  }
  stages.push(
    initialize('row', rowPlaces.length, host.place, [startReason(problem)]),
    initialize('column', deviceBlocks ? columnBands : 1, host.place, []),
  );
  if (params.rate === 'adagrad')
    stages.push({
      name: 'allocate',
      at: rowPlaces,
      work: { kind: 'allocate', data: ['row-sums', 'column-sums'] },
    });
  if (deviceBlocks === undefined && kind === 'hogwild')
    stages.push(batchOrder(params, profile.ratings, host.place, true));
  return stages;
}

function initialize(side: 'row' | 'column', parts: number, at: Place, reasons: readonly string[]): Stage {
  const places = Array.from({ length: parts }, () => at);
  const uses = { keys: `${side}-keys`, factors: `${side}s` };
  return taskStage(`initialize-${side}s`, places, { kernel: 'initialize', uses }, { reasons });
}

/** The stage `sgd-epoch` without its work. */
function epochStage(problem: SgdProblem): Omit<Stage, 'work'> {
  const { profile, schedule, compute, device, features, layout, rowPlaces } = problem;
  const { users, items, ratings } = profile;
  const [bytesOfUsers, bytesOfItems] = [users, items].map((rows) =>
    factorBytes(rows, features, device.strideStep),
  );
  const exchange = exchangeText(problem);
  return {
    name: 'sgd-epoch',
    at: schedule.deviceBlocks ? rowPlaces : compute.map(({ place }) => place),
    kernel: [layout.step, schedule.precision].filter((part) => part !== undefined).join(' '),
    partitions: { p: schedule.columnBands, q: schedule.rowBands },
    bytesRead: layout.bytes + bytesOfUsers + bytesOfItems,
    bytesWritten: bytesOfUsers + bytesOfItems,
    flops: 10 * ratings * features,
    ...(exchange === undefined ? {} : { exchange }),
    reasons: epochReasons(problem),
  };
}

function exchangeText({ schedule: { deviceBlocks }, device }: SgdProblem): string | undefined {
  if (deviceBlocks === undefined) return device.ownMemory ? undefined : 'shared memory';
  const { movedBytes, rowsStaged, resident } = deviceBlocks;
  if (movedBytes === 0) return 'none';
  return `${formatBytes(movedBytes)} of ${rowsStaged ? 'factors' : 'segments'} ${resident ? 'passed on' : 'up, and down'}`;
}

/** Facts about data and parameters, for the head of a printed plan. */
function describeProblem({
  profile: { users, items, ratings, testRatings },
  params,
}: SgdProblem): JsonObject {
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

/**
 * The reasons for the choices of the whole plan, for printing. `versionBytes`: bytes of one version of the
 * factors.
 */
function planReasons(
  { profile, params, schedule, features, device: { strideStep } }: SgdProblem,
  versionBytes: number,
): string[] {
  return [
    ...rankWarnings(params.rank, profile).map(({ text }) => `warning: ${text}`),
    ...shrinkReason(params),
    ...rankingReasons(params, 'epoch'),
    ...(params.biases
      ? [
          'biases: two more features, [β, 1] and [1, γ], whose 1s stay constant; μ is subtracted from ' +
            'the ratings',
        ]
      : []),
    `${features} features are stored with a stride of ${factorStride(features, strideStep)} floats ` +
      `(whole ${strideStep === 8 ? '256-bit groups' : `tiles of ${strideStep}`}; padding is 0)`,
    `an epoch updates a copy of the factors, ${formatBytes(versionBytes)}: if its loss rises by a ` +
      `tenth, or is not a number, it is run again at half the rate, at most three times`,
    determinism(schedule),
  ];
}

/** The reasons for the choices of an epoch, and warnings. */
function epochReasons({ profile, params, schedule, details }: SgdProblem): string[] {
  const { text, warning } = convergenceReport({ ...profile, ...details }, schedule);
  const warnings = [warning, dominantItem({ ratings: profile.ratings, itemCounts: details.itemCounts })];
  return [
    ...schedule.reasons,
    rateReason(params),
    text,
    ...warnings.flatMap((one) => (one === undefined ? [] : [`WARNING: ${one}`])),
  ];
}

function startReason({ params: { biases }, details: { start } }: SgdProblem): string {
  if (start !== undefined)
    return (
      `training continues from ${start}; new users and items start at their least-squares solutions, ` +
      `regularized towards the mean row of the model`
    );
  return (
    `Gaussian factors drawn by seed and external id, small compared with the ` +
    `ratings${biases ? '' : ', shifted so that initial predictions are near the mean rating'}`
  );
}

/** The sentence of a plan about regularization in addition to λ. */
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
        `an epoch of rate γ first divides ${parts.join(', ')}: the effect of one epoch of the offset ` +
          `o of λ n + o and of the damping of biases, for any number of ratings of a row`,
      ];
}

function rateReason({ rate, learningRate: alpha, decay }: SgdParams): string {
  const form = {
    paper: `γ_t = ${alpha} / (1 + ${decay} t^1.5), t = 0, 1, .. (cuMF_SGD)`,
    constant: `γ = ${alpha}`,
    bold:
      `γ = ${alpha} at first, then 5 % more after an epoch whose loss fell and half after one ` +
      `whose loss rose`,
    adagrad: `${alpha} / √(1 + G) with a sum G of squared gradients for each user and item`,
  }[rate];
  return `rate ${rate}: ${form}, in units of 1 / σ`;
}

function determinism(schedule: SgdSchedule): string {
  const { kind, rowBands, columnBands, precision, deviceBlocks } = schedule;
  if (deviceBlocks)
    return (
      `blocks: ${devicesOf(schedule) > 1 ? 'different devices share no row and no column; ' : ''}inside ` +
      `a block the steps of different teams interleave at random, so no two runs give the same bits`
    );
  if (kind === 'hogwild' || kind === 'tile')
    return `${kind}: steps of different workers interleave at random, so no two runs give the same bits`;
  if (precision !== undefined)
    return (
      `waves run one after the other in the order drawn for the epoch, so any run with this grid of ` +
      `${rowBands} x ${columnBands} and seed gives the same bits on such a GPU`
    );
  return (
    `blocks that share a band run in the order drawn for the epoch, so any run with this grid of ` +
    `${rowBands} x ${columnBands} and seed gives the same bits`
  );
}
