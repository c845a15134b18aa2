import type { PlanDevices } from '../../engine/run/devices.ts';
import type { DeviceInfo } from '../../engine/plan/device-info.ts';
import { formatBytes } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import { strideOf } from '../../engine/plan/bound-plan.ts';
import { PLAN_VERSION, type PhysicalPlan, unbound } from '../../engine/plan/physical-plan.ts';
import { peakOf } from '../../engine/run/walk.ts';
import { HOST } from '../../engine/plan/place.ts';
import { loadingStages, loadStages } from '../planner/load-stages.ts';
import type { RatingsProfile } from '../planner/profile.ts';
import { blockBytes, factorStride, loadingBytes, spilledLoadingBytes } from '../planner/sizes.ts';
import { contracts } from '../tasks/tasks.ts';
import { type PlanWithoutMemory, speculatesWhereItFits } from '../training/planned-speculation.ts';
import { rankingBytes } from '../training/planned-measures.ts';
import { rankingReasons } from '../params/common.ts';
import { layoutOf } from './bytes.ts';
import { estimatedSizes, type SgdDataSet, sgdDataSets } from './data-sets.ts';
import { type SgdParams, sgdFeatures } from './params.ts';
import { describeProblem, determinism, rateReason, shrinkReason, startReason } from './plan-text.ts';
import { bandsLeave, staysOnDevice } from './schedules/blocks-schedule.ts';
import { convergenceReport, dominantItem } from './schedules/convergence.ts';
import { type SgdSchedule, VERSIONS } from './schedules/schedule.ts';
import { sgdStages } from './stages.ts';

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

/** The pieces of a plan are made from these. */
interface SgdProblem {
  readonly profile: RatingsProfile;
  readonly params: SgdParams;
  readonly schedule: SgdSchedule;
  readonly devices: PlanDevices;
  readonly datasets: readonly SgdDataSet[];
  /** Bytes of one version of both sides on the first device. */
  readonly versionBytes: number;
}

/** The plan with a schedule; `rejected`: the reasons against those before it. */
export function planOfSchedule(
  profile: RatingsProfile,
  params: SgdParams,
  schedule: SgdSchedule,
  devices: PlanDevices,
  details: SgdPlanDetails,
  rejected: readonly string[],
): PhysicalPlan {
  const datasets = sgdDataSets(estimatedSizes(profile, schedule), params, schedule, devices);
  const versionBytes = bytesOfVersion(datasets, devices.compute[0]);
  const problem = { profile, params, schedule, devices, datasets, versionBytes };
  const usual = planOfStages(problem, details, rejected);
  const [device] = devices.compute;
  if (isHopeless(problem)) return withMemory(problem, usual, { [device.place]: VERSIONS * versionBytes });
  const plan = speculatesWhereItFits(usual, {
    called: 'epoch',
    params,
    compute: devices.compute,
    foreseen: isForeseen(problem),
  });
  return withMemory(problem, plan, peakOf(unbound(plan), contracts, plan.keep));
}

function bytesOfVersion(datasets: readonly SgdDataSet[], device: DeviceInfo): number {
  return datasets
    .filter(({ columns, derived }) => columns !== undefined && !derived)
    .reduce(
      (sum, set) =>
        sum + set.parts.reduce((all, { rows }) => all + 4 * rows * strideOf(set, device.strideStep), 0),
      0,
    );
}

/**
 * True where two versions of the factors do not fit alone: that needs no walk of the steps, of which a large
 * grid has millions.
 */
function isHopeless({ schedule, devices, versionBytes }: SgdProblem): boolean {
  const { capacityBytes } = devices.compute[0];
  return (
    schedule.deviceBlocks === undefined && capacityBytes !== null && VERSIONS * versionBytes > capacityBytes
  );
}

/** True where the next epoch is known before the loss of the last: a bold driver's rates follow from losses. */
function isForeseen({ schedule, params }: SgdProblem): boolean {
  const { tile, deviceBlocks, inBands } = schedule;
  return tile !== undefined && deviceBlocks === undefined && !inBands && params.rate !== 'bold';
}

function planOfStages(
  problem: SgdProblem,
  details: SgdPlanDetails,
  rejected: readonly string[],
): PlanWithoutMemory {
  const { profile, params, schedule, devices, datasets } = problem;
  const { users, items, ratings, testRatings } = profile;
  const { compute, host } = devices;
  return {
    planVersion: PLAN_VERSION,
    algorithm: 'sgd',
    problem: describeProblem(profile, params),
    sizes: { users, items, ratings, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices: { schedule: JSON.parse(JSON.stringify(schedule)) as JsonObject },
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets,
    load: sgdLoadStages(problem),
    ...sgdStages(profile, params, schedule, devices, datasets, {
      epoch: epochReasons(problem, details),
      start: startReason(params, details.start),
    }),
    rounds: params.maxIter,
    keep: { start: true, best: params.earlyStop !== undefined },
    ...rankingBytes(params, profile, compute[0], true),
    reasons: [...planReasons(problem), determinism(schedule), ...rejected],
  };
}

function sgdLoadStages({ profile, schedule, devices: { host } }: SgdProblem): PhysicalPlan['load'] {
  const rows = Math.max(profile.users, profile.items);
  return [
    ...loadStages(profile, host.place, {
      kernel: 'relabel, counting sort',
      bytesWritten: blockBytes(rows, profile.ratings),
      reasons: [
        'ids are relabelled at random, so that bands of adjacent rows and columns are like any others; ratings are put on the scale of their deviation σ',
      ],
    }),
    ...layoutStages(layoutOf(schedule, profile.ratings, rows), profile.ratings, host),
  ];
}

/** Reasons of the stage of an epoch. */
function epochReasons(
  { profile, params, schedule }: SgdProblem,
  { itemCounts, userCounts }: SgdPlanDetails,
): string[] {
  const { users, items, ratings } = profile;
  const { text, warning } = convergenceReport({ users, items, ratings, itemCounts, userCounts }, schedule);
  const warnings = [warning, dominantItem({ ratings, itemCounts })].flatMap((one) => one ?? []);
  return [...schedule.reasons, rateReason(params), text, ...warnings.map((one) => `WARNING: ${one}`)];
}

function planReasons({ params, devices, versionBytes }: SgdProblem): string[] {
  const [{ strideStep }] = devices.compute;
  const features = sgdFeatures(params);
  return [
    ...shrinkReason(params),
    ...rankingReasons(params, 'epoch'),
    ...(params.biases
      ? [
          'biases: two more features, [β, 1] and [1, γ], whose 1s are never stepped; μ is taken off the ratings',
        ]
      : []),
    `${features} features are stored with a stride of ${factorStride(features, strideStep)} floats (whole ${strideStep === 8 ? '256-bit groups' : `tiles of ${strideStep}`}; padding is 0)`,
    `an epoch steps a copy of the factors, ${formatBytes(versionBytes)}: one whose loss rises by a tenth, or is no number, is run again at half the rate, three times at most`,
  ];
}

/** The plan with its bytes by place, from those of its steps. */
function withMemory(
  { profile, params, schedule, devices }: SgdProblem,
  plan: PlanWithoutMemory,
  peak: Readonly<Record<string, number>>,
): PhysicalPlan {
  const { users, items, ratings } = profile;
  const [device] = devices.compute;
  // Copies of a device's factors: the start or the last one, and the result. Factors in host memory are no
  // copies until a later epoch replaces them.
  const versions = staysOnDevice(schedule).rows ? 2 : 1;
  const copies = device.ownMemory ? versions * 4 * sgdFeatures(params) * (users + items) : 0;
  const running = peak[HOST] ?? 0;
  // Bands are sorted while there are no factors yet, and may have left when these come back.
  const left = bandsLeave(schedule, device) ? blockBytes(Math.max(users, items), ratings) : 0;
  const bytes = schedule.inBands
    ? Math.max(loadingBytes(ratings), running, running + copies - left)
    : Math.max(spilledLoadingBytes(ratings), running) + copies;
  return { ...plan, memory: { ...peak, [HOST]: Math.ceil(bytes) } };
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
