import { formatBytes } from '../engine/format.ts';
import type { JsonObject } from '../engine/json.ts';
import type { DevicePlan, PhysicalPlan, StagePlan } from '../engine/physical-plan.ts';
import type { RatingsProfile } from './als-plan.ts';
import { blockBytes, factorBytes, factorStride, loadingBytes, requireDeviceFit } from './partition.ts';
import { taskCount } from './row-ranges.ts';
import { convergenceReport } from './sgd-convergence.ts';
import { lambdasOf, type SgdParams } from './sgd-params.ts';
import { BATCH_RATINGS, chooseSchedule, type SgdSchedule } from './sgd-schedule.ts';

/** What is known beside the profile once the ratings are numbered. */
export interface SgdPlanDetails {
  /** n_v of each item: makes the expected collisions exact. */
  readonly itemCounts?: ArrayLike<number>;
  /** The model that is continued, as messages name it. */
  readonly start?: string;
}

/**
 * The physical plan of SGD: a pure function of profile, parameters and device. An epoch steps a copy of the factors, so two
 * versions of both sides stand side by side, three with an early stop. Throws CapacityError when they don't fit.
 */
export function planSgd(profile: RatingsProfile, params: SgdParams, device: DevicePlan, { itemCounts, start }: SgdPlanDetails = {}): PhysicalPlan {
  const { users: m, items: n, ratings: nz, testRatings } = profile;
  const { maxIter } = params;
  const features = params.rank + (params.biases ? 2 : 0);
  const schedule = chooseSchedule(profile, params, device);
  const convergence = convergenceReport({ users: m, items: n, ratings: nz, itemCounts }, schedule);
  const adaptive = params.rate === 'adagrad' ? 4 * (m + n) : 0;
  const versionBytes = factorBytes(m, features) + factorBytes(n, features) + adaptive;
  // On a GPU the ratings lie there too, once as they come and once as they are stepped, and float16 mirrors beside the factors.
  const onGpu = device.kind === 'gpu' ? blockBytes(Math.max(m, n), nz) + 12 * nz : 0;
  const deviceBytes = versionBytes * (params.earlyStop === undefined ? 2 : 3) * (schedule.precision === 'f16' ? 1.5 : 1) + onGpu;
  requireDeviceFit(deviceBytes, device);
  const grid = { p: schedule.columnBands, q: schedule.rowBands };
  const onDevice = { device: device.name, partitions: grid };
  const whole = { device: device.name, partitions: { p: 1, q: 1 } };
  const hogwild = schedule.kind === 'hogwild';
  const batches = Math.ceil(nz / BATCH_RATINGS);
  const rows = schedule.rows === 'users' ? m : n;
  const layoutBytes = schedule.tile !== undefined ? 8 * nz : hogwild ? 12 * nz : 8 * nz + 4 * rows * schedule.columnBands;
  const stages: StagePlan[] = [
    { id: 0, name: 'read', inputs: [], device: 'host', kernel: profile.input ?? 'source', bytesWritten: 12 * nz },
    { id: 1, name: 'index-ids', inputs: [0], device: device.name, kernel: 'number-keys', tasks: Math.ceil(nz / 2 ** 20), bytesRead: 12 * nz, bytesWritten: 12 * nz },
    { id: 2, name: 'rating-blocks', inputs: [1], ...whole, kernel: 'relabel, counting sort', bytesRead: 12 * nz, bytesWritten: blockBytes(rows, nz), reasons: ['ids are relabelled at random, so that bands of adjacent rows and columns are like any others; ratings are put on the scale of their deviation σ'] },
    schedule.tile !== undefined
      ? { id: 3, name: 'deal-ratings', inputs: [2], ...whole, kernel: 'sgd-tile-count, sgd-tile-scatter', bytesRead: 8 * nz, bytesWritten: 8 * nz }
      : hogwild
      ? { id: 3, name: 'shuffle-ratings', inputs: [2], ...whole, kernel: 'deal-ratings, shuffle-ratings', bytesRead: 8 * nz, bytesWritten: layoutBytes }
      : { id: 3, name: 'cut-blocks', inputs: [2], ...onDevice, kernel: 'cut-block', tasks: schedule.rowBands, bytesRead: 8 * nz, bytesWritten: layoutBytes },
    { id: 4, name: 'initialize', inputs: [2], ...whole, kernel: start === undefined ? 'initialize' : 'copy', bytesWritten: versionBytes, reasons: [startReason(params, start)] },
    {
      id: 5,
      name: 'sgd-epoch',
      inputs: [3, 4],
      ...onDevice,
      kernel: `sgd-block ${schedule.kind}`,
      tasks: device.kind === 'gpu' ? 1 : hogwild ? Math.min(batches, 8 * schedule.workers) : schedule.rowBands * schedule.columnBands,
      repeat: maxIter,
      bytesRead: layoutBytes + versionBytes,
      bytesWritten: versionBytes,
      flops: 10 * nz * features,
      exchange: 'shared memory',
      reasons: [...schedule.reasons, rateReason(params), convergence.text, ...(convergence.warning === undefined ? [] : [`WARNING: ${convergence.warning}`])],
    },
    { id: 6, name: 'train-error', inputs: [2, 5], ...whole, kernel: 'squared-error', tasks: taskCount(nz), repeat: maxIter, bytesRead: blockBytes(rows, nz), flops: 2 * nz * features },
  ];
  if (testRatings !== undefined) {
    stages.push({ id: 7, name: 'test-error', inputs: [5], ...whole, kernel: 'squared-error', tasks: taskCount(testRatings), repeat: maxIter, bytesRead: blockBytes(rows, testRatings), flops: 2 * testRatings * features });
  }
  return {
    planVersion: 1,
    algorithm: 'sgd',
    problem: describeProblem(profile, params),
    devices: [device],
    stages,
    memory: { hostBytes: Math.max(loadingBytes(nz), 8 * nz + layoutBytes) + (testRatings === undefined ? 0 : blockBytes(rows, testRatings)), deviceBytes },
    reasons: [
      ...(params.biases ? ['biases: two more features, [β, 1] and [1, γ], whose 1s are never stepped; μ is taken off the ratings'] : []),
      `${features} features are stored with a stride of ${factorStride(features)} floats (whole 256-bit groups; padding is 0)`,
      `an epoch steps a copy of the factors, ${formatBytes(versionBytes)}: one whose loss rises by a tenth, or is no number, is run again at half the rate, three times at most`,
      determinism(schedule),
    ],
  };
}

function startReason({ biases }: SgdParams, start: string | undefined): string {
  if (start !== undefined) return `training goes on from ${start}; new users and items start at the mean of those that it has`;
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

function determinism({ kind, rowBands, columnBands }: SgdSchedule): string {
  if (kind === 'hogwild') return 'hogwild: steps of different workers meet as they happen to, so no two runs give the same bits';
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
