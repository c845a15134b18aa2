import { CapacityError } from '../../../engine/errors.ts';
import { counted, formatBytes } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import { type PhysicalPlan, PLAN_VERSION, unbound } from '../../../engine/plan/physical-plan.ts';
import { HOST, SPILL } from '../../../engine/plan/place.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import type { PlanDevices } from '../../../engine/run/devices.ts';
import { peakOf } from '../../../engine/run/walk.ts';
import { rankWarnings } from '../../evaluation/model-warnings.ts';
import { rankingReasons } from '../../params/common.ts';
import { forSides } from '../../params/param.ts';
import { loadStages, taskStage } from '../../planner/load-stages.ts';
import {
  type RatingsProfile,
  blockBytes,
  factorBytes,
  planSizes,
  requireBindings,
  requireDeviceFit,
  factorStride,
} from '../../planner/sizes.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import { contracts } from '../../tasks/tasks.ts';
import {
  type PlanWithoutMemory,
  speculatesWhereItFits,
  rankingBytes,
} from '../../training/planned-training.ts';
import type { SizedAlsParams } from '../als-params.ts';
import type { AlsChoices } from '../kernel-choices.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import {
  attributesText,
  coefficientStages,
  givenAttributes,
  priorStages,
  targetsOf,
} from './attribute-stages.ts';
import { alsDataSets, estimatedSizes, ratingBytes } from './data-sets.ts';
import { hostMemory, keptFileBytes } from './memory.ts';
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
import { fixStages, hasTotals, updateStage, measureStagesOf, solvedPenaltyStages } from './stages.ts';

/**
 * The plan of one grid. If a side is fixed as a whole, every device gets a copy of it after it was solved,
 * and the other side is solved by model parallelism (cuMF, section 4.2: p = 1). If it is fixed in parts, the
 * other side is solved by data parallelism (section 4.3). Throws CapacityError if the plan does not fit.
 */
export function planOfGrid(problem: AlsProblem, choices: PhysicalPlan['choices']): PhysicalPlan {
  const { compute, grid, params } = problem;
  const plan = speculatesWhereItFits(planOfStages(problem, choices), {
    called: 'iteration',
    params,
    compute,
    foreseen: sides.every((side) => grid[side].q === 1 && grid[side].ratings === 'device'),
  });
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
  const { compute, host, device, rows, testRatings, params, places, grid } = problem;
  const factors = sides.flatMap((side) => {
    const { factors: own, bias } = sideNames(side, problem);
    const fitted = targetsOf(problem, side).map(({ coefficients }) => coefficients);
    return [own, ...(bias ? [bias] : []), ...fitted];
  });
  const { ratings } = problem.profile;
  return {
    planVersion: PLAN_VERSION,
    algorithm: 'als',
    problem: describeProblem(problem),
    sizes: planSizes({ ...problem.profile, testRatings }),
    params: { ...params },
    choices,
    devices: compute.includes(host) ? compute : [...compute, host],
    datasets: alsDataSets(problem, estimatedSizes(problem)),
    load: loadStages(problem.profile, host.place, {
      kernel: 'counting sort, transpose',
      bytesWritten: blockBytes(rows.users, ratings) + blockBytes(rows.items, ratings),
      reasons: [],
    }),
    start: startStages(problem),
    // The Gram matrix of the new users (implicit data) is used twice: for this round's loss, and for solving
    // the items of the next round.
    round: (['items', 'users'] as const).flatMap((side) => [
      ...(sumsOf(grid, side) === undefined
        ? [updateStage(problem, side)]
        : sumsOf(grid, side) === 'equations'
          ? equationStages(problem, side)
          : vectorStages(problem, side)),
      ...fixStages(problem, side),
      ...solvedPenaltyStages(problem, side),
      ...coefficientStages(problem, side),
    ]),
    measure: measureStagesOf(problem),
    end: [
      {
        name: 'fetch-factors',
        at: places,
        work: { kind: 'exchange', how: 'move', data: factors, to: 'host' },
      },
    ],
    rounds: params.maxIter,
    keep: { start: false, best: params.earlyStop !== undefined },
    ...(params.implicitPrefs ? {} : rankingBytes(params, { ...rows, ratings, testRatings }, device)),
    reasons: planReasons(problem),
  };
}

/** Returns the plan if the host has enough memory for it, else throws. */
function requireHost(plan: PhysicalPlan, hostBytes = Infinity): PhysicalPlan {
  const bytes = plan.memory[HOST] ?? 0;
  if (bytes > hostBytes)
    throw new CapacityError(
      `needs ${formatBytes(bytes)} (${bytes} bytes) of host memory, which has ${formatBytes(hostBytes)}`,
      { phase: 'plan', advice: 'Raise memoryBudget, or use a smaller rank' },
    );
  return plan;
}

/** Makes plans of one training for different grids and devices. */
export function plannedGrids(
  profile: RatingsProfile,
  params: SizedAlsParams,
  devices: PlanDevices,
  choices: AlsChoices | undefined,
  options: AlsPlanOptions,
) {
  const problemOn = (compute = devices.compute, grid?: AlsGrid): AlsProblem =>
    alsProblem(profile, params, { ...devices, compute }, choices, { ...options, grid });
  return {
    params,
    problemOn,
    /** The plan of a grid (default: the usual grid). Throws CapacityError if it does not fit. */
    planOf: (grid?: AlsGrid, compute = devices.compute): PhysicalPlan => {
      const made = planOfGrid(problemOn(compute, grid), { ...choices, ...(grid && { grid }) });
      return requireHost(made, options.hostBytes);
    },
    /** The same training on devices that each have `bytes` bytes of memory. */
    onDevicesOf: (bytes: number): PlannedGrids => {
      const compute = devices.compute.map((device) => ({ ...device, capacityBytes: bytes }));
      const host = compute.find(({ place }) => place === devices.host.place) ?? devices.host;
      return plannedGrids(profile, params, { compute, host }, choices, options);
    },
  };
}

export interface PlannedGrids extends ReturnType<typeof plannedGrids> {}

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
    ...(problem.anchored ? ['users-anchors', 'items-anchors'] : []),
    ...lengths,
    ...totals,
    ...sides.flatMap((side) => givenAttributes(problem, side)),
  ];
  const zeros = [
    items.factors,
    ...(users.bias && items.bias ? [users.bias, items.bias] : []),
    ...sides.flatMap((side) => targetsOf(problem, side).map(({ coefficients }) => coefficients)),
  ];
  return [
    {
      name: 'place-ratings',
      at: places,
      work: { kind: 'exchange', how: 'move', data: given, to: 'places' },
      ...(device.ownMemory ? { exchange: `${formatBytes(ratingBytes(profile))} up` } : {}),
    },
    taskStage(
      'initialize',
      Array.from({ length: grid.users.q }, () => host.place),
      {
        kernel: 'initialize',
        uses: { keys: users.keys, factors: users.factors },
        params: { rank: params.rank, seed: params.seed, nonnegative: absolute },
      },
      {
        tasks: Math.min(rows.users, taskCount(profile.ratings)),
        bytesWritten: factorBytes(rows.users, params.rank),
        reasons: [
          `items are solved first, from user factors that are ${absolute ? 'absolute values of ' : ''}Gaussian numbers, scaled to length 1 and drawn by seed and external id`,
        ],
      },
    ),
    { name: 'allocate', at: places, work: { kind: 'allocate', data: zeros } },
    ...sides.flatMap((side) => priorStages(problem, side)),
    ...fixStages(problem, 'users'),
  ];
}

/** Facts about data and parameters, for the head of a printed plan. */
function describeProblem(problem: AlsProblem): JsonObject {
  const {
    profile: { users, items, ratings, testRatings },
    params,
  } = problem;
  return {
    'users m': users,
    'items n': items,
    'ratings Nz': ratings,
    ...(testRatings === undefined ? {} : { 'test pairs': testRatings }),
    ...attributesText(problem),
    'rank f': params.biases ? `${params.rank} and biases` : params.rank,
    λ: params.implicitPrefs ? params.regParam : regularizationText(params),
    ...(params.implicitPrefs
      ? {
          α: params.alpha,
          ...(params.unobservedWeight === undefined ? {} : { w: params.unobservedWeight }),
          ν: params.regExponent,
          weights: params.weight,
          ...(params.halfLife === undefined || params.halfLife === 'none'
            ? {}
            : { 'half-life': `${params.halfLife} before ${params.now}` }),
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
    ...factorReasons(problem),
    ...ratingReasons(problem),
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
