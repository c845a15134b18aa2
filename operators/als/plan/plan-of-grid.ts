import { counted, formatBytes } from '../../../engine/format.ts';
import { type PhysicalPlan, PLAN_VERSION, unbound } from '../../../engine/plan/physical-plan.ts';
import { HOST, SPILL } from '../../../engine/plan/place.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { loadStages } from '../../planner/load-stages.ts';
import {
  type RatingsProfile,
  blockBytes,
  factorBytes,
  requireBindings,
  requireDeviceFit,
  factorStride,
} from '../../planner/sizes.ts';
import { contracts } from '../../tasks/tasks.ts';
import {
  type PlanWithoutMemory,
  speculatesWhereItFits,
  rankingBytes,
} from '../../training/planned-training.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import type { SizedAlsParams } from '../als-params.ts';
import { alsDataSets, estimatedSizes, ratingBytes } from './data-sets.ts';
import { equationStages, vectorStages } from './parted-side.ts';
import {
  type AlsGrid,
  hasLengths,
  type Side,
  sides,
  sumsOf,
  verticalParts,
  type AlsPlanOptions,
  type AlsProblem,
  alsProblem,
  sideNames,
  isInBlocks,
  tasksOfPart,
} from './problem.ts';
import { fixStages, hasTotals, updateStage, measureStagesOf } from './stages.ts';
import { hostMemory, keptFileBytes } from './memory.ts';
import { requireHost } from './refusals.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { rankWarnings } from '../../evaluation/model-warnings.ts';
import { rankingReasons } from '../../params/common.ts';
import { forSides } from '../../params/table.ts';
import { ALL_ROWS } from '../solver-choice.ts';

/**
 * The plan of one grid. If a side is fixed as a whole, every device gets a copy of it after it was solved,
 * and the other side is solved by model parallelism (cuMF, section 4.2: p = 1). If it is fixed in parts, the
 * other side is solved by data parallelism (section 4.3). Throws CapacityError if the plan does not fit.
 */
export function planOfGrid(
  profile: RatingsProfile,
  params: SizedAlsParams,
  devices: PlanDevices,
  choices?: AlsChoices,
  options: AlsPlanOptions = {},
): PhysicalPlan {
  const problem = alsProblem(profile, params, devices, choices, options);
  const { compute, grid } = problem;
  const plan = speculatesWhereItFits(
    planOfStages(problem, { ...choices, ...(options.grid === undefined ? {} : { grid: options.grid }) }),
    {
      called: 'iteration',
      params,
      compute,
      foreseen: sides.every((side) => grid[side].q === 1 && grid[side].ratings === 'device'),
    },
  );
  const nz = problem.profile.ratings;
  const blocks = Math.min(...sides.map((side) => grid[side].q * verticalParts(grid, side)));
  requireBindings(plan, { [counted(nz, 'rating')]: Math.ceil((4 * nz) / blocks) });
  const peak = peakOf(unbound(plan), contracts, plan.keep);
  const memory = {
    ...peak,
    [HOST]: hostMemory(problem, peak[HOST]),
    ...(peak[SPILL] !== undefined && { [SPILL]: peak[SPILL] + keptFileBytes(problem) }),
  };
  const whole = { ...plan, memory };
  requireDeviceFit(whole, 'SGD, whose blocks are staged where they do not fit');
  return whole;
}

/** The plan without `memory`, which is computed afterwards by simulating the plan's steps. */
function planOfStages(problem: AlsProblem, choices: PhysicalPlan['choices']): PlanWithoutMemory {
  const { compute, host, device, rows, testRatings, params } = problem;
  const { ratings } = problem.profile;
  return {
    planVersion: PLAN_VERSION,
    algorithm: 'als',
    problem: describeProblem(problem),
    sizes: { ...rows, ratings, ...(testRatings === undefined ? {} : { testRatings }) },
    params: { ...params },
    choices,
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets: alsDataSets(problem, estimatedSizes(problem)),
    load: alsLoadStages(problem),
    start: startStages(problem),
    // The Gram matrix of the new users (implicit data) is used twice: for this round's loss, and for solving
    // the items of the next round.
    round: (['items', 'users'] as const).flatMap((side) => [
      ...solvingStages(problem, side),
      ...fixStages(problem, side),
    ]),
    measure: measureStagesOf(problem),
    end: endStages(problem),
    rounds: params.maxIter,
    keep: { start: false, best: params.earlyStop !== undefined },
    ...(params.implicitPrefs ? {} : rankingBytes(params, { ...rows, ratings, testRatings }, device)),
    reasons: planReasons(problem),
  };
}

/** Stages that solve the rows of a side. */
function solvingStages(problem: AlsProblem, side: Side): Stage[] {
  const sums = sumsOf(problem.grid, side);
  return sums === undefined
    ? [updateStage(problem, side)]
    : sums === 'equations'
      ? equationStages(problem, side)
      : vectorStages(problem, side);
}

function alsLoadStages({ profile, rows, host }: AlsProblem): Stage[] {
  const { ratings: nz } = profile;
  return loadStages(profile, host.place, {
    kernel: 'counting sort, transpose',
    bytesWritten: blockBytes(rows.users, nz) + blockBytes(rows.items, nz),
    reasons: [],
  });
}

/** Makes plans of one training for different grids and devices. */
export class PlannedGrids {
  readonly params: SizedAlsParams;
  readonly #profile: RatingsProfile;
  readonly #devices: PlanDevices;
  readonly #choices: AlsChoices | undefined;
  readonly #options: AlsPlanOptions;

  constructor(
    profile: RatingsProfile,
    params: SizedAlsParams,
    devices: PlanDevices,
    choices: AlsChoices | undefined,
    options: AlsPlanOptions,
  ) {
    this.params = params;
    this.#profile = profile;
    this.#devices = devices;
    this.#choices = choices;
    this.#options = options;
  }

  problemOn(compute = this.#devices.compute): AlsProblem {
    const devices = { ...this.#devices, compute };
    return alsProblem(this.#profile, this.params, devices, this.#choices, this.#options);
  }

  /** The plan of a grid (default: the usual grid). Throws CapacityError if it does not fit. */
  planOf(grid?: AlsGrid, compute = this.#devices.compute): PhysicalPlan {
    return requireHost(this.#plan(grid, { ...this.#devices, compute }), this.#options.hostBytes);
  }

  /** The same training on devices that each have `bytes` bytes of memory. */
  onDevicesOf(bytes: number): PlannedGrids {
    const compute = this.#devices.compute.map((device) => ({ ...device, capacityBytes: bytes }));
    const host = compute.find(({ place }) => place === this.#devices.host.place) ?? this.#devices.host;
    return new PlannedGrids(this.#profile, this.params, { compute, host }, this.#choices, this.#options);
  }

  #plan(grid: AlsGrid | undefined, devices: PlanDevices): PhysicalPlan {
    const options = { ...this.#options, grid };
    return planOfGrid(this.#profile, this.params, devices, this.#choices, options);
  }
}

/** Stages that send ratings to their places, draw users, and set items to zero. */
function startStages(problem: AlsProblem): Stage[] {
  const { profile, testRatings, params, places, host, device, rows, grid } = problem;
  const [users, items] = sides.map((side) => sideNames(side, problem));
  const absolute = params.nonnegative || params.start === 'level';
  const lengths = params.implicitPrefs
    ? []
    : sides.flatMap((side) => (hasLengths(grid, side) ? [`${side}-lengths`] : []));
  const totals = hasTotals(problem) ? [items.totals] : [];
  const given = [
    'ratings-by-user',
    'ratings-by-item',
    ...(testRatings === undefined ? [] : ['test-ratings']),
    ...(params.implicitPrefs ? ['users-shifts', 'items-shifts'] : []),
    ...lengths,
    ...totals,
  ];
  const zeros = [items.factors, ...(users.bias && items.bias ? [users.bias, items.bias] : [])];
  return [
    {
      name: 'place-ratings',
      at: places,
      work: { kind: 'exchange', how: 'move', data: given, to: 'places' },
      ...(device.ownMemory ? { exchange: `${formatBytes(ratingBytes(profile))} up` } : {}),
    },
    {
      name: 'initialize',
      at: Array.from({ length: grid.users.q }, () => host.place),
      work: {
        kind: 'tasks',
        tasks: [
          {
            kernel: 'initialize',
            uses: { keys: users.keys, factors: users.factors },
            params: { rank: params.rank, seed: params.seed, nonnegative: absolute },
          },
        ],
      },
      kernel: 'initialize',
      tasks: Math.min(rows.users, taskCount(profile.ratings)),
      bytesWritten: factorBytes(rows.users, params.rank),
      reasons: [
        `items are solved first, from user factors that are ${absolute ? 'absolute values of ' : ''}Gaussian numbers, scaled to length 1 and drawn by seed and external id`,
      ],
    },
    { name: 'allocate', at: places, work: { kind: 'allocate', data: zeros } },
    ...fixStages(problem, 'users'),
  ];
}

function endStages(problem: AlsProblem): Stage[] {
  const data = sides.flatMap((side) => {
    const { factors, bias } = sideNames(side, problem);
    return [factors, ...(bias ? [bias] : [])];
  });
  return [
    { name: 'fetch-factors', at: problem.places, work: { kind: 'exchange', how: 'move', data, to: 'host' } },
  ];
}

/** Facts about data and parameters, for the head of a printed plan. */
function describeProblem({
  profile: { users, items, ratings, testRatings },
  params,
}: AlsProblem): JsonObject {
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    'rank f': params.biases ? `${params.rank} and biases` : params.rank,
    λ: params.implicitPrefs ? params.regParam : regularizationText(params),
    ...(params.implicitPrefs
      ? {
          α: params.alpha,
          ...(params.unobservedWeight === undefined ? {} : { w: params.unobservedWeight }),
          ν: params.regExponent,
          weights: params.weight,
        }
      : {}),
    iterations: params.maxIter,
    seed: params.seed,
  };
}

/**
 * Describes the regularization for a printed plan: "0.05", or "0.05 n^0.5 + 7 σ" with an exponent or an
 * offset.
 */
function regularizationText({
  regParam,
  regExponent,
  regOffset,
  biases,
  biasDamping,
}: SizedAlsParams): number | string {
  const { users, items } = forSides(biasDamping);
  const power = regExponent === 1 && regOffset === 0 ? '' : regExponent === 1 ? ' n' : ` n^${regExponent}`;
  const damping =
    biases && users + items > 0
      ? `; biases damped by ${users === items ? users : `${users} and ${items}`} ratings`
      : '';
  if (power === '' && damping === '') return regParam;
  return `${regParam}${power}${regOffset === 0 ? '' : ` + ${regOffset} σ`}${damping}`;
}

/** The reasons for the choices of the whole plan, for printing. */
function planReasons(problem: AlsProblem): string[] {
  const { params, profile } = problem;
  return [
    ...rankWarnings(params.rank, profile).map(({ text }) => `warning: ${text}`),
    ...(params.implicitPrefs ? [] : rankingReasons(params, 'iteration')),
    gridReason(problem),
    ...sumsReasons(problem),
    ...(params.biases
      ? [
          `biases: eliminated from the normal equations, which keep f features; one solve gives ` +
            `factors and biases${params.nonnegative ? '; factors are kept >= 0, biases are not' : ''}`,
        ]
      : []),
    ...homeReasons(problem),
    ...deviceReasons(problem),
  ];
}

function gridReason({ grid, places }: AlsProblem): string {
  const where = places.length === 1 ? 'the device' : `each of ${places.length} devices`;
  if (sides.every((side) => grid[side].fixed === 'whole'))
    return (
      `p = 1: ${where} holds the whole fixed side; the task that forms a row's equations also solves ` +
      `them, so that memory holds few A at a time (eq. 8 without the f² terms)`
    );
  return sides
    .map((side) =>
      isInBlocks(grid, side)
        ? `${side} are solved from ${verticalParts(grid, side)} vertical parts, by ` +
          `${solvedBy(grid, side)} that are kept until their rows are solved`
        : `${side} are solved from the whole fixed side, a copy on ${where}`,
    )
    .join('; ');
}

function solvedBy(grid: AlsGrid, side: Side): string {
  const sums = sumsOf(grid, side);
  if (sums === 'partial-equations') return 'conjugate gradients on vectors and partial equations';
  return sums === 'vectors' ? 'conjugate gradients on vectors' : 'equations';
}

/** The reason printed if devices exchange normal equations because the solver needs them. */
function sumsReasons({ grid, places, solver, params }: AlsProblem): string[] {
  const ofEquations = sides.some((side) => sumsOf(grid, side) === 'equations');
  if (places.length === 1 || !ofEquations || solver.cgBelow >= ALL_ROWS) return [];
  const advice = params.nonnegative ? '' : '; solver cg lets them exchange vectors, which are smaller';
  return [`devices exchange normal equations, which the solver ${solver.kernel} needs${advice}`];
}

/** The reasons printed if the device does not keep all ratings and factors for the whole run. */
function homeReasons(problem: AlsProblem): string[] {
  return [...factorReasons(problem), ...ratingReasons(problem)];
}

function factorReasons({ grid }: AlsProblem): string[] {
  return sides.flatMap((side) => {
    const { factors, q } = grid[side];
    if (factors === 'device') return [];
    const home =
      factors === 'host' ? 'host memory' : 'files of the spill folder, where each iteration writes new ones';
    return [`the factors of ${side} are in ${q} parts in ${home}; the device holds the parts that it uses`];
  });
}

function ratingReasons({ grid: { users, items } }: AlsProblem): string[] {
  if (users.ratings === 'device' && items.ratings === 'device') return [];
  const from = users.ratings === 'spill' ? 'files of the spill folder, written once' : 'host memory';
  return [
    `ratings are staged from ${from}, in ${users.q} parts by user and ${items.q} by item: the device ` +
      `holds two parts and computes on one of them`,
  ];
}

function deviceReasons(problem: AlsProblem): string[] {
  const {
    device: { ownMemory, wholePasses, strideStep },
    params: { rank: f },
  } = problem;
  return [
    `${f} features are stored with a stride of ${factorStride(f, strideStep)} floats (whole ` +
      `${strideStep === 8 ? '256-bit groups' : `tiles of ${strideStep}`}; padding is 0)`,
    ...(ownMemory ? ['the initial factors are drawn on the CPU, with the same bits as without a GPU'] : []),
    wholePasses
      ? 'a pass over the ratings is one task: the device divides the rows itself'
      : `a pass over the ratings is cut into ${tasksOfPart(problem, 'users')} tasks of about equal ` +
        `numbers of ratings; the cuts, and so the bits of the result, are the same for any number of threads`,
  ];
}
