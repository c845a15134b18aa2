import type { JsonObject } from '../engine/json.ts';
import type { Device } from '../engine/executor.ts';
import { formatBytes, formatCount } from '../engine/format.ts';
import type { DevicePlan, PhysicalPlan, StagePlan } from '../engine/physical-plan.ts';
import type { AlsParams } from './als-params.ts';
import { alsDeviceBytes, blockBytes, factorBytes, factorStride, loadingBytes, requireDeviceFit } from './partition.ts';
import { taskCount } from './row-ranges.ts';
import { chooseSolver } from './solver-choice.ts';

/** What the planner knows of the data. */
export interface RatingsProfile {
  /** m */
  readonly users: number;
  /** n */
  readonly items: number;
  /** Nz */
  readonly ratings: number;
  /** Pairs of the validation set, when there is one. */
  readonly testRatings?: number;
  /** The logical plan's steps, for the first stage: "parquet(ratings/) -> select-ratings". */
  readonly input?: string;
}

export function devicePlan(device: Device): DevicePlan {
  const { name, kind, parallelism, capacityBytes, description } = device;
  return { name, kind, parallelism, capacityBytes, description };
}

/**
 * The physical plan of ALS: a pure function of profile, parameters and device. One device holds both sides, so
 * p = q = 1 (cuMF, section 4.2: model parallelism with a single part) and no exchange carries bytes: the threads share
 * one memory. Throws CapacityError when the factors don't fit, before anything is allocated.
 */
export function planAls(profile: RatingsProfile, params: AlsParams, device: DevicePlan): PhysicalPlan {
  const { users: m, items: n, ratings: nz, testRatings } = profile;
  const { maxIter } = params;
  const f = params.rank + (params.biases ? 1 : 0);
  const solver = chooseSolver({ ...params, rank: f });
  const deviceBytes = alsDeviceBytes(m, n, f, params.earlyStop !== undefined);
  requireDeviceFit(deviceBytes, device);
  const tasks = taskCount(nz);
  const chunks = Math.ceil(nz / 2 ** 20);
  const onDevice = { device: device.name, partitions: { p: 1, q: 1 } };
  const halfIteration = (id: number, name: string, inputs: number[], solved: number, fixed: number): StagePlan => ({
    id,
    name,
    inputs,
    ...onDevice,
    kernel: `update ${solver.kernel}`,
    tasks,
    repeat: maxIter,
    bytesRead: blockBytes(solved, nz) + factorBytes(fixed, f),
    bytesWritten: factorBytes(solved, f),
    flops: nz * f * (f + 1),
    exchange: 'shared memory',
  });
  const stages: StagePlan[] = [
    { id: 0, name: 'read', inputs: [], device: 'host', kernel: profile.input ?? 'source', bytesWritten: 12 * nz },
    { id: 1, name: 'index-ids', inputs: [0], device: device.name, kernel: 'number-keys', tasks: chunks, bytesRead: 12 * nz, bytesWritten: 12 * nz },
    {
      id: 2,
      name: 'rating-blocks',
      inputs: [1],
      ...onDevice,
      kernel: 'counting sort, transpose',
      bytesRead: 12 * nz,
      bytesWritten: blockBytes(m, nz) + blockBytes(n, nz),
      reasons: [
        `q = 1: one block holds ${formatCount(nz)} <= 2,147,483,647 ratings`,
        `p = 1: X (${formatBytes(factorBytes(m, f))}) and Θ (${formatBytes(factorBytes(n, f))}) fit the device together, ${formatBytes(deviceBytes)} with the version being written (eq. 8 without the f² terms: A is solved in place)`,
      ],
    },
    { id: 3, name: 'initialize', inputs: [2], ...onDevice, kernel: 'initialize', tasks, bytesWritten: factorBytes(m, f), reasons: [`items are solved first, from unit-norm ${params.nonnegative ? 'absolute ' : ''}Gaussian user factors keyed by seed and external id`] },
    { ...halfIteration(4, 'update-items', [2, 3], n, m), reasons: [solver.reason] },
    halfIteration(5, 'update-users', [2, 4], m, n),
    { id: 6, name: 'train-error', inputs: [2, 4, 5], ...onDevice, kernel: 'squared-error', tasks, repeat: maxIter, bytesRead: blockBytes(m, nz), flops: 2 * nz * f },
  ];
  if (testRatings !== undefined) {
    stages.push({ id: 7, name: 'test-error', inputs: [4, 5], ...onDevice, kernel: 'squared-error', tasks: taskCount(testRatings), repeat: maxIter, bytesRead: blockBytes(m, testRatings), flops: 2 * testRatings * f });
  }
  return {
    planVersion: 1,
    algorithm: 'als',
    problem: describeProblem(profile, params),
    devices: [device],
    stages,
    memory: { hostBytes: loadingBytes(nz) + (testRatings === undefined ? 0 : blockBytes(m, testRatings)), deviceBytes },
    reasons: [
      ...(params.biases ? [`biases: one more feature, which is 1 on the fixed side, so the same normal equations give factors and biases${params.nonnegative ? '; factors are kept >= 0, biases are not' : ''}`] : []),
      `${f} features are stored with a stride of ${factorStride(f)} floats (whole 256-bit groups; padding is 0)`,
      `a pass over the ratings is cut into ${tasks} tasks by ratings, whatever the number of threads, so any number gives the same bits`,
    ],
  };
}

function describeProblem({ users, items, ratings, testRatings }: RatingsProfile, params: AlsParams): JsonObject {
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank f': params.biases ? `${params.rank} and biases` : params.rank,
    'λ': params.regParam,
    iterations: params.maxIter,
    seed: params.seed,
  };
}
