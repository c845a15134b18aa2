import type { JsonObject } from '../engine/json.ts';
import { computeDevice, computeDevices, hostDevice } from '../engine/devices.ts';
import type { Device, Executor, KernelChoice } from '../engine/executor.ts';
import { formatBytes, formatCount } from '../engine/format.ts';
import type { DevicePlan, MemoryPlan, PhysicalPlan, StagePlan } from '../engine/physical-plan.ts';
import type { AlsParams } from './als-params.ts';
import type { AlsChoices, ChoiceProfile } from './kernel-choices.ts';
import { alsDeviceBytes, blockBytes, factorBytes, factorStride, loadingBytes, requireBindings, requireDeviceFit } from './partition.ts';
import { taskCount } from './row-ranges.ts';
import { chooseSolver } from './solver-choice.ts';

/** What the planner knows of the data. */
export interface RatingsProfile extends ChoiceProfile {
  /** Pairs of the validation set, when there is one. */
  readonly testRatings?: number;
  /** The logical plan's steps, for the first stage: "parquet(ratings/) -> select-ratings". */
  readonly input?: string;
}

export function devicePlan({ name, kind, parallelism, capacityBytes, description, bindingBytes, strideStep, limits }: Device): DevicePlan {
  const capacity = Number.isFinite(capacityBytes) ? capacityBytes : null;
  const plan = { name, kind, parallelism, capacityBytes: capacity, description };
  return kind === 'cpu' ? plan : { ...plan, bindingBytes, strideStep, ...(limits && { limits }) };
}

/** The devices of a run as `planAls` and `planSgd` take them; `others`: GPUs beside the first. */
export function planDevices(executor: Executor): { readonly device: DevicePlan; readonly host: DevicePlan | undefined; readonly others: readonly DevicePlan[] } {
  const [device, host] = [computeDevice(executor), hostDevice(executor)];
  const others = computeDevices(executor).filter((one) => one !== device);
  return { device: devicePlan(device), host: host === device ? undefined : devicePlan(host), others: others.map(devicePlan) };
}

/** What a plan for a GPU has beside the GPU. */
export interface GpuSurroundings {
  /** The CPU device, which sorts and draws the start. */
  readonly host?: DevicePlan;
  /** See chooseKernels; unknown while the data are. */
  readonly choices?: AlsChoices;
}

/**
 * The physical plan of ALS: a pure function of profile, parameters and device. One device holds both sides, so
 * p = q = 1 (cuMF, section 4.2: model parallelism with a single part) and no exchange carries bytes: the threads share
 * one memory, and a GPU has all to itself. Throws CapacityError when the factors don't fit, before anything is allocated.
 */
export function planAls(profile: RatingsProfile, params: AlsParams, device: DevicePlan, { host = device, choices }: GpuSurroundings = {}): PhysicalPlan {
  const { users: m, items: n, ratings: nz, testRatings } = profile;
  const { maxIter } = params;
  const { kind, strideStep: step = 8 } = device;
  const f = params.rank + (params.biases ? 1 : 0);
  const solver = chooseSolver({ ...params, rank: f }, kind);
  const uploadBytes = kind === 'gpu' ? blockBytes(m, nz) + blockBytes(n, nz) + (testRatings === undefined ? 0 : blockBytes(m, testRatings)) : 0;
  const memory = memoryPlan(profile, params, device, uploadBytes, choices);
  const { deviceBytes } = memory;
  const matrix = (rows: number) => factorBytes(rows, f, step);
  requireBindings({ [`the factors of ${formatCount(Math.max(m, n))} rows`]: matrix(Math.max(m, n)), [`${formatCount(nz)} ratings`]: 4 * nz }, device);
  requireDeviceFit(deviceBytes, device, 'SGD, whose blocks are staged where they do not fit');
  const tasks = taskCount(nz, kind);
  const chunks = Math.ceil(nz / 2 ** 20);
  // A GPU has one stage more: the blocks' way to it.
  const blocks = kind === 'gpu' ? 3 : 2;
  const [start, itemsDone, usersDone] = [blocks + 1, blocks + 2, blocks + 3];
  const onHost = { device: host.name, partitions: { p: 1, q: 1 } };
  const onDevice = { device: device.name, partitions: { p: 1, q: 1 } };
  const halfIteration = (id: number, name: string, inputs: number[], solved: number, fixed: number, choice: KernelChoice | undefined): StagePlan => ({
    id,
    name,
    inputs,
    ...onDevice,
    kernel: ['update', choice?.variant, solver.kernel].filter((part) => part !== undefined).join(' '),
    ...(choice === undefined ? {} : { variant: choice.variant, precision: choice.precision }),
    tasks,
    repeat: maxIter,
    bytesRead: blockBytes(solved, nz) + matrix(fixed),
    bytesWritten: matrix(solved),
    flops: nz * f * (f + 1),
    ...(kind === 'cpu' ? { exchange: 'shared memory' } : {}),
  });
  const stages: StagePlan[] = [
    { id: 0, name: 'read', inputs: [], device: 'host', kernel: profile.input ?? 'source', bytesWritten: 12 * nz },
    { id: 1, name: 'index-ids', inputs: [0], device: host.name, kernel: 'number-keys', tasks: chunks, bytesRead: 12 * nz, bytesWritten: 12 * nz },
    {
      id: 2,
      name: 'rating-blocks',
      inputs: [1],
      ...onHost,
      kernel: 'counting sort, transpose',
      bytesRead: 12 * nz,
      bytesWritten: blockBytes(m, nz) + blockBytes(n, nz),
      reasons: [
        `q = 1: one block holds ${formatCount(nz)} <= 2,147,483,647 ratings`,
        `p = 1: X (${formatBytes(matrix(m))}) and Θ (${formatBytes(matrix(n))}) fit the device together, ${formatBytes(deviceBytes)} with ${kind === 'gpu' ? 'R, Rᵀ, ' : ''}the version being written (eq. 8 without the f² terms: A is solved in place)`,
      ],
    },
    ...(kind === 'gpu' ? [{ id: blocks, name: 'upload', inputs: [2], ...onDevice, kernel: 'upload', tasks: testRatings === undefined ? 2 : 3, bytesRead: uploadBytes, bytesWritten: uploadBytes }] : []),
    { id: start, name: 'initialize', inputs: [2], ...onHost, kernel: 'initialize', tasks: taskCount(nz), bytesWritten: factorBytes(m, f), reasons: [`items are solved first, from unit-norm ${params.nonnegative ? 'absolute ' : ''}Gaussian user factors keyed by seed and external id`] },
    { ...halfIteration(itemsDone, 'update-items', [blocks, start], n, m, choices?.items), reasons: [solver.reason, ...(choices ? [choices.items.reason] : [])] },
    { ...halfIteration(usersDone, 'update-users', [blocks, itemsDone], m, n, choices?.users), ...(choices ? { reasons: [choices.users.reason] } : {}) },
    { id: blocks + 4, name: 'train-error', inputs: [blocks, itemsDone, usersDone], ...onDevice, kernel: 'squared-error', tasks, repeat: maxIter, bytesRead: blockBytes(m, nz), flops: 2 * nz * f },
  ];
  if (testRatings !== undefined) {
    stages.push({ id: blocks + 5, name: 'test-error', inputs: [itemsDone, usersDone], ...onDevice, kernel: 'squared-error', tasks: taskCount(testRatings, kind), repeat: maxIter, bytesRead: blockBytes(m, testRatings), flops: 2 * testRatings * f });
  }
  return {
    planVersion: 1,
    algorithm: 'als',
    problem: describeProblem(profile, params),
    devices: host === device ? [device] : [device, host],
    stages,
    memory,
    reasons: [
      ...(params.biases ? [`biases: one more feature, which is 1 on the fixed side, so the same normal equations give factors and biases${params.nonnegative ? '; factors are kept >= 0, biases are not' : ''}`] : []),
      ...(kind === 'gpu' ? gpuReasons(factorStride(f, step), f) : cpuReasons(factorStride(f, step), f, tasks)),
    ],
  };
}

function cpuReasons(stride: number, f: number, tasks: number): string[] {
  return [
    `${f} features are stored with a stride of ${stride} floats (whole 256-bit groups; padding is 0)`,
    `a pass over the ratings is cut into ${tasks} tasks by ratings, whatever the number of threads, so any number gives the same bits`,
  ];
}

function gpuReasons(stride: number, f: number): string[] {
  return [
    `${f} features are stored with a stride of ${stride} floats (whole tiles of 16; padding is 0)`,
    'the start is drawn on the CPU, the same bits as without a GPU',
    'a pass over the ratings is one task: a GPU shares the rows out itself',
  ];
}

/** On a GPU the ratings are on the device too, and the host has the start and the result, or a copy of it on the way. */
function memoryPlan({ users: m, items: n, ratings: nz, testRatings }: RatingsProfile, params: AlsParams, { kind, strideStep }: DevicePlan, uploadBytes: number, choices?: AlsChoices): MemoryPlan {
  const f = params.rank + (params.biases ? 1 : 0);
  const test = testRatings === undefined ? 0 : blockBytes(m, testRatings);
  const hostBytes = loadingBytes(nz) + test;
  const factors = alsDeviceBytes(m, n, f, params.earlyStop !== undefined, strideStep);
  if (kind === 'cpu') return { hostBytes, deviceBytes: factors };
  return { hostBytes: hostBytes + 2 * 4 * f * (m + n), deviceBytes: factors + uploadBytes + (choices ? choices.users.deviceBytes + choices.items.deviceBytes : 0) };
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
