import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import type { JsonObject } from '../../engine/json.ts';
import { strideOf } from '../../engine/plan/bound-plan.ts';
import { type PhysicalPlan, PLAN_VERSION, unbound } from '../../engine/plan/physical-plan.ts';
import { HOST, type Place } from '../../engine/plan/place.ts';
import type { Stage } from '../../engine/plan/stages.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { loadingStages, loadStages } from '../planner/load-stages.ts';
import { blockBytes, factorBytes, loadingBytes, spilledLoadingBytes } from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { type PlanWithoutMemory, speculatesWhereItFits } from '../training/planned-speculation.ts';
import { rankingBytes } from '../training/planned-measures.ts';
import { estimatedSizes, type SgdDataSet, sgdDataSets, steppedMatrices } from './data-sets.ts';
import { describeProblem, epochReasons, planReasons, startReason } from './description.ts';
import type { SgdProblem } from './problem.ts';
import { bandsLeave, staysOnDevice } from './schedules/blocks-schedule.ts';
import { VERSIONS } from './schedules/schedule.ts';
import { formatBytes } from '../../engine/format.ts';
import { measuring } from './measures.ts';
import { batchOrder, roundStages } from './round.ts';

/**
 * The plan of one schedule (order of the ratings). An epoch updates a copy of the factors, so memory holds
 * two versions of both sides. It holds three with early stop, or if an epoch is started before the loss of
 * the previous one is known. `rejected`: reasons against other schedules.
 */
export function planOfSchedule(problem: SgdProblem, rejected: readonly string[]): PhysicalPlan {
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
    measure: measuring(problem),
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
  const uses = { keys: `${side}-keys`, factors: `${side}s` };
  return {
    name: `initialize-${side}s`,
    at: Array.from({ length: parts }, () => at),
    work: { kind: 'tasks', tasks: [{ kernel: 'initialize', uses }] },
    kernel: 'initialize',
    reasons,
  };
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
