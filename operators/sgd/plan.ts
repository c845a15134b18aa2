import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { DeviceInfo, PhysicalPlan, StagePlan } from '../../engine/physical-plan.ts';
import type { RatingsProfile } from '../als-plan.ts';
import { blockBytes, factorStride, loadingBytes, requireBindings, requireDeviceFit } from '../planner/sizes.ts';
import { lessByBlocks } from '../sgd-blocks-bytes.ts';
import { taskCount } from '../row-ranges.ts';
import { chooseSchedule } from './choose-schedule.ts';
import { layoutOf, sgdBuffers, sgdDeviceBytes, versionBytesOf } from './bytes.ts';
import { convergenceReport, dominantItem } from './convergence.ts';
import { lambdasOf, type SgdParams } from './params.ts';
import { BATCH_RATINGS, type SgdSchedule } from './schedule.ts';

/** What is known beside the profile. */
export interface SgdPlanDetails {
  /** n_v of each item: makes the expected collisions exact. */
  readonly itemCounts?: ArrayLike<number>;
  readonly userCounts?: ArrayLike<number>;
  /** The model that is continued, as messages name it. */
  readonly start?: string;
  /** Chosen already, from what was known then. */
  readonly schedule?: SgdSchedule;
  /** The CPU device beside a GPU, which sorts and draws the start. */
  readonly host?: DeviceInfo;
  /** Further GPUs, which the schedule blocks takes too. */
  readonly others?: readonly DeviceInfo[];
}

/**
 * The physical plan of SGD: a pure function of profile, parameters and device. An epoch steps a copy of the factors, so two
 * versions of both sides stand side by side, three with an early stop. Throws CapacityError when they don't fit.
 */
export function planSgd(profile: RatingsProfile, params: SgdParams, device: DeviceInfo, { itemCounts, userCounts, start, host = device, others = [], schedule = chooseSchedule(profile, params, device, others) }: SgdPlanDetails = {}): PhysicalPlan {
  const { users: m, items: n, ratings: nz, testRatings } = profile;
  const { kind } = device;
  const devices = schedule.deviceBlocks ? [device, ...others] : [device];
  const features = params.rank + (params.biases ? 2 : 0);
  const convergence = convergenceReport({ users: m, items: n, ratings: nz, itemCounts, userCounts }, schedule);
  const rows = Math.max(m, n);
  const layout = layoutOf(schedule, nz, rows);
  const versionBytes = versionBytesOf(profile, params, device);
  const deviceBytes = sgdDeviceBytes(profile, params, device, schedule);
  for (const one of devices) {
    requireDeviceFit(deviceBytes, one, schedule.deviceBlocks ? lessByBlocks(schedule.precision) : 'leave the schedule out: blocks are staged where they do not fit');
    if (kind === 'gpu') requireBindings(sgdBuffers(profile, params, one, schedule), one);
  }
  const grid = { p: schedule.columnBands, q: schedule.rowBands };
  const onGrid = { device: device.name, partitions: grid };
  const [onDevice, onHost] = [device, host].map(({ name }) => ({ device: name, partitions: { p: 1, q: 1 } }));
  const errorTasks = (count: number) => (schedule.deviceBlocks ? { ...onGrid, tasks: schedule.rowBands * schedule.columnBands } : { ...onDevice, tasks: taskCount(count, kind) });
  const test = testRatings === undefined ? 0 : blockBytes(rows, testRatings);
  const stages: StagePlan[] = [
    { id: 0, name: 'read', inputs: [], device: 'host', kernel: profile.input ?? 'source', bytesWritten: 12 * nz },
    { id: 1, name: 'index-ids', inputs: [0], device: host.name, kernel: 'number-keys', tasks: Math.ceil(nz / 2 ** 20), bytesRead: 12 * nz, bytesWritten: 12 * nz },
    { id: 2, name: 'rating-blocks', inputs: [1], ...onHost, kernel: 'relabel, counting sort', bytesRead: 12 * nz, bytesWritten: blockBytes(rows, nz), reasons: ['ids are relabelled at random, so that bands of adjacent rows and columns are like any others; ratings are put on the scale of their deviation σ'] },
    { id: 3, name: layout.name, inputs: [2], ...(layout.where === 'grid' ? { ...onGrid, device: host.name } : layout.where === 'host' ? onHost : onDevice), kernel: layout.kernel, ...(layout.tasks === undefined ? {} : { tasks: layout.tasks }), bytesRead: 8 * nz, bytesWritten: layout.bytes },
    { id: 4, name: 'initialize', inputs: [2], ...onHost, kernel: start === undefined ? 'initialize' : 'copy', bytesWritten: versionBytes, reasons: [startReason(params, start)] },
    {
      id: 5,
      name: 'sgd-epoch',
      inputs: [3, 4],
      ...onGrid,
      kernel: layout.step,
      ...(schedule.precision === undefined ? {} : { precision: schedule.precision }),
      tasks: epochTasks(schedule, nz, kind),
      repeat: params.maxIter,
      bytesRead: layout.bytes + versionBytes,
      bytesWritten: versionBytes,
      flops: 10 * nz * features,
      ...exchangeOf(schedule, kind),
      reasons: [...schedule.reasons, rateReason(params), convergence.text, ...[convergence.warning, dominantItem({ ratings: nz, itemCounts })].flatMap((warning) => (warning === undefined ? [] : [`WARNING: ${warning}`]))],
    },
    { id: 6, name: 'train-error', inputs: [2, 5], ...errorTasks(nz), kernel: 'squared-error', repeat: params.maxIter, bytesRead: blockBytes(rows, nz), flops: 2 * nz * features },
  ];
  if (testRatings !== undefined) {
    stages.push({ id: 7, name: 'test-error', inputs: [5], ...errorTasks(testRatings), kernel: 'squared-error', repeat: params.maxIter, bytesRead: test, flops: 2 * testRatings * features });
  }
  return {
    planVersion: 1,
    algorithm: 'sgd',
    problem: describeProblem(profile, params),
    devices: host === device ? [device] : [...devices, host],
    stages,
    memory: { hostBytes: Math.max(loadingBytes(nz), 8 * nz + (layout.where === 'device' ? 0 : layout.bytes)) + test, deviceBytes },
    reasons: [
      ...(params.biases ? ['biases: two more features, [β, 1] and [1, γ], whose 1s are never stepped; μ is taken off the ratings'] : []),
      `${features} features are stored with a stride of ${factorStride(features, device.strideStep)} floats (whole ${kind === 'cpu' ? '256-bit groups' : 'tiles of 16'}; padding is 0)`,
      `an epoch steps a copy of the factors, ${formatBytes(versionBytes)}: one whose loss rises by a tenth, or is no number, is run again at half the rate, three times at most`,
      determinism(schedule),
    ],
  };
}

function epochTasks({ kind, workers, rowBands, columnBands, deviceBlocks }: SgdSchedule, nz: number, device: DeviceInfo['kind']): number {
  if (device === 'gpu') return deviceBlocks ? rowBands * columnBands : 1;
  return kind === 'hogwild' ? Math.min(Math.ceil(nz / BATCH_RATINGS), 8 * workers) : rowBands * columnBands;
}

function exchangeOf({ deviceBlocks }: SgdSchedule, kind: DeviceInfo['kind']): Pick<StagePlan, 'exchange'> {
  if (deviceBlocks) return { exchange: `${formatBytes(deviceBlocks.movedBytes)} of segments up, and down` };
  return kind === 'cpu' ? { exchange: 'shared memory' } : {};
}

function startReason({ biases }: SgdParams, start: string | undefined): string {
  if (start !== undefined) return `training goes on from ${start}; new users and items start at their least-squares rows about the mean of those that it has`;
  return `Gaussian factors keyed by seed and external id, small beside the ratings${biases ? '' : ', shifted so that products begin at the mean rating'}`;
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

function determinism({ kind, rowBands, columnBands, precision, deviceBlocks }: SgdSchedule): string {
  if (deviceBlocks) return 'blocks: those of different GPUs share no row and no column; inside a block steps of different teams meet as they happen to, so no two runs give the same bits';
  if (kind === 'hogwild' || kind === 'tile') return `${kind}: steps of different workers meet as they happen to, so no two runs give the same bits`;
  if (precision !== undefined) return `a wave follows the other in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits on such a GPU`;
  return `blocks that share a band run in the order drawn for the epoch, so any run with this grid of ${rowBands} x ${columnBands} and seed gives the same bits`;
}

function describeProblem({ users, items, ratings, testRatings }: RatingsProfile, params: SgdParams): JsonObject {
  const { users: lambdaUsers, items: lambdaItems } = lambdasOf(params);
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank k': params.biases ? `${params.rank} and biases` : params.rank,
    'λ': lambdaUsers === lambdaItems ? lambdaUsers : `${lambdaUsers} for users, ${lambdaItems} for items`,
    epochs: params.maxIter,
    seed: params.seed,
  };
}
