import { formatBytes } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { DataUses, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { depthOf, parseMetric } from '../../evaluation/ranking/ranking-metrics.ts';
import { MAXIMUM_FORMED_RANK, rankingMetricOf } from '../../params/common.ts';
import { taskStage } from '../../planner/load-stages.ts';
import { blockBytes, factorBytes, factorStride } from '../../planner/sizes.ts';
import type { VariantChoice } from '../../tasks/task-types.ts';
import type { KernelChoice } from '../../tasks/tasks.ts';
import { measureStages } from '../../training/loss.ts';
import {
  gramSlices,
  implicitNames,
  implicitStages,
  implicitUses,
  rankSlices,
  TEST_PLACES,
} from '../implicit/stages.ts';
import { implicitWeights, unobservedWeightOf } from '../implicit/weights.ts';
import { solverParams, takesFewer } from '../solver-choice.ts';
import { tiledReason, tilingOf } from '../tiles.ts';
import { coefficientNorms, priorUses } from './attribute-stages.ts';
import {
  hasGramOfParts,
  isPipelined,
  otherSide,
  sharesOfParts,
  type Side,
  type SideGrid,
  exchangesVectors,
  type AlsProblem,
  isHalfOnly,
  partPlaces,
  sideNames,
  tasksOfPart,
  hasLengths,
  verticalParts,
  fixedUse,
  overRatings,
  ratingPlaces,
  regularizationOf,
  sides,
} from './problem.ts';

/**
 * The stage that solves all rows of a side when every device holds the whole fixed side: p = 1, cuMF's model
 * parallelism (section 4.2).
 */
export function updateStage(problem: AlsProblem, side: Side): Stage {
  const {
    params,
    profile: { ratings: nz },
    rows,
    grid,
    device,
    solver,
    anchored,
  } = problem;
  const [solved, fixed] = [sideNames(side, problem), sideNames(otherSide[side], problem)];
  const choice = problem.choices?.[side];
  const f = params.rank;
  const { q } = grid[side];
  const uses: DataUses = {
    block: solved.ratings,
    fixed: fixed.whole,
    previous: { set: solved.factors, version: 'old' },
    factors: solved.factors,
    ...(params.implicitPrefs ? implicitUses(side, otherSide[side]) : {}),
    ...(anchored
      ? { prior: { set: solved.factors, version: 'old' }, anchors: implicitNames(side).anchors }
      : priorUses(problem, side)),
    ...(solved.bias && fixed.wholeBias ? { fixedBias: fixed.wholeBias, bias: solved.bias } : {}),
  };
  const task = params.implicitPrefs ? 'update-implicit' : 'update';
  const tiled = tilingOf(params, solver, rows[otherSide[side]], device);
  const weights = params.implicitPrefs ? implicitWeights(params) : regularizationOf(params, side);
  const taskParams: JsonObject = {
    rank: f,
    ...weights,
    ...solverParams(solver),
    ...measuredOf(problem, side),
    ...kernelOf(choice),
    ...(tiled ? { tiled } : {}),
  };
  return {
    name: `update-${side}`,
    at: partPlaces(problem, side),
    work: { kind: 'tasks', tasks: [{ kernel: task, uses, params: taskParams, ...stepsTaken(problem) }] },
    ...pipelineOf(problem, side),
    kernel: [task, choice?.variant, solver.kernel].filter((part) => part !== undefined).join(' '),
    tasks: tasksOfPart(problem, side),
    partitions: { p: 1, q },
    bytesRead: blockBytes(rows[side], nz) + q * factorBytes(rows[otherSide[side]], f, device.strideStep),
    bytesWritten: factorBytes(rows[side], f, device.strideStep),
    flops: operationsOf(problem),
    ...(device.ownMemory || q > 1 ? {} : { exchange: 'shared memory' }),
    ...kernelMemory(choice, listsHeld(problem, side), largestShare(grid[side])),
    // Items are solved first, so the reason is given there.
    reasons: [
      ...(side === 'items' ? [solver.reason] : []),
      ...(choice === undefined ? [] : [choice.reason]),
      ...(tiled ? [tiledReason(tiled)] : []),
      ...commonReason(grid[side], side),
    ],
  };
}

/**
 * Operations of a half-iteration on the ratings: of their normal equations, or above the largest rank of
 * these of b and of A's products in the first residual and each step.
 */
function operationsOf({
  params: { rank: f },
  profile: { ratings },
  solver: { cgSteps },
}: AlsProblem): number {
  return ratings * f * (f > MAXIMUM_FORMED_RANK ? 2 + 4 * (cgSteps + 1) : f + 1);
}

/** The number of CG steps as a parameter of the round, if rounds have different numbers of steps. */
export function stepsTaken({ params, profile, solver }: AlsProblem): Pick<TaskPlan, 'takes'> {
  return solver.cgBelow > 0 && takesFewer(params, profile) ? { takes: { cgSteps: 'cgSteps' } } : {};
}

/**
 * True if solving the users also computes the loss of their rows. A pass over the ratings for the training
 * error is then only needed after the last iteration. CPUs and some GPU kernels do this, except with
 * `anchored` or if the users' vectors are exchanged.
 */
function solveComputesLoss({ device, choices, anchored, grid }: AlsProblem): boolean {
  return (
    !anchored &&
    !exchangesVectors(grid, 'users') &&
    (!device.choosesKernels || choices?.users.tellsLoss === true)
  );
}

/**
 * True if computing the loss while users are solved needs the sum of each item's ratings: the loss contains
 * its product with the item's bias.
 */
export function hasTotals(problem: AlsProblem): boolean {
  return problem.params.biases && !problem.params.implicitPrefs && solveComputesLoss(problem);
}

/**
 * The parameter `measured` for tasks that solve users, which requests the loss of their rows. Users are
 * solved last in an iteration.
 */
export function measuredOf(problem: AlsProblem, side: Side): { readonly measured?: true } {
  return side === 'users' && solveComputesLoss(problem) ? { measured: true } : {};
}

/**
 * The properties `brief` and `reasons` of the stage that computes the training error by a pass over all
 * ratings. If solving the users already gives the error, measurements after all but the last iteration skip
 * that stage.
 */
function passOf(problem: AlsProblem): Pick<Stage, 'brief' | 'reasons'> {
  if (solveComputesLoss(problem))
    return {
      brief: 'left out',
      reasons: [
        'a pass over the ratings after the last iteration only; in other iterations the solve of the ' +
          'users computes loss and training error',
      ],
    };
  return problem.anchored
    ? {}
    : {
        reasons: [
          'a pass over the ratings in each iteration: these kernels do not compute the loss of the ' +
            'rows that they solve',
        ],
      };
}

/**
 * Device memory that the chosen kernel needs in addition to the data sets. The choice has the bytes for all
 * rows of a side; `lists` and `scratch` are the fractions of the kernel's work lists and of its scratch
 * memory that a device has at the same time.
 */
export function kernelMemory(
  choice: KernelChoice | undefined,
  lists: number,
  scratch = lists,
): Pick<Stage, 'heldBytes' | 'scratchBytes'> {
  if (choice === undefined) return {};
  const { deviceBytes, scratchBytes = {} } = choice;
  return {
    heldBytes: Math.ceil(deviceBytes * lists),
    scratchBytes: Object.fromEntries(
      Object.entries(scratchBytes).map(([name, bytes]) => [name, Math.ceil(bytes * scratch)]),
    ),
  };
}

/**
 * The fraction of a kernel's work lists for all rows of a side that a device has at the same time. For staged
 * ratings these are the lists of two parts.
 */
function listsHeld({ grid, places }: AlsProblem, side: Side): number {
  const { q, ratings, common = 0, speeds } = grid[side];
  const parts = Math.ceil(q / places.length);
  if (common > 0 || speeds !== undefined)
    return common + (1 - common) * Math.max(...(speeds ?? [1 / places.length]));
  return (ratings === 'device' ? parts : Math.min(2, parts)) / q;
}

function largestShare(grid: SideGrid): number {
  return Math.max(...(sharesOfParts(grid) ?? [1 / grid.q]));
}

function commonReason({ common }: SideGrid, side: Side): string[] {
  return common === undefined
    ? []
    : [
        `the last part, ${Math.round(100 * common)} % of the ratings, is solved on every device: this ` +
          `takes less time than an exchange of its ${side}`,
      ];
}

/** The chosen kernel as parameters of the tasks that use it; empty without a choice. */
export function kernelOf(choice: KernelChoice | undefined): VariantChoice {
  return choice === undefined
    ? {}
    : { variant: choice.variant, precision: choice.precision, ratingScale: choice.ratingScale };
}

/**
 * Stages after a side was solved that prepare it to be the fixed side: send its parts to all devices, where
 * they form one matrix, unless it is read part by part; and for implicit data compute its Gram matrix.
 */
export function fixStages(problem: AlsProblem, side: Side): Stage[] {
  const { params, places, rows, device, grid } = problem;
  const names = sideNames(side, problem);
  const gram = params.implicitPrefs ? gramStages(problem, side) : [];
  if (grid[side].fixed === 'parts' || names.whole === names.factors) return gram;
  const each = (isHalfOnly(problem, side) ? 2 : 4) * factorStride(params.rank, device.strideStep);
  const moved = Math.ceil(rows[side] * (1 - (grid[side].common ?? 0))) * each;
  const gather: Stage = {
    name: `gather-${side}`,
    at: places,
    work: {
      kind: 'exchange',
      how: 'all-gather',
      data: [names.factors, ...(names.bias ? [names.bias] : [])],
      to: [names.whole, ...(names.wholeBias ? [names.wholeBias] : [])],
    },
    ...pipelineOf(problem, side),
    ...(places.length > 1
      ? {
          exchange:
            `all-gather: ${formatBytes(moved)} down, ${formatBytes((places.length - 1) * moved)} ` +
            `up${isPipelined(grid, side, places.length) ? ', part by part' : ''}`,
        }
      : {}),
  };
  return [gather, ...gram];
}

/**
 * Stages that compute a side's Gram matrix: of the whole side, or of each part, which each device then adds in
 * part order.
 */
function gramStages(problem: AlsProblem, side: Side): Stage[] {
  const { params, places, rows, grid, device } = problem;
  const { rank } = params;
  const { gram, grams } = implicitNames(side);
  const ofParts = hasGramOfParts(grid, side, places.length);
  const parts = partPlaces(problem, side);
  const uses = ofParts ? { factors: side, gram: grams } : { factors: sideNames(side, problem).whole, gram };
  const stage = taskStage(
    ofParts ? `grams-${side}` : `gram-${side}`,
    ofParts ? parts : places,
    { kernel: 'gram', uses, params: { rank, weight: unobservedWeightOf(params) } },
    {
      tasks: gramSlices(rank, device.wholePasses).length,
      bytesRead: factorBytes(rows[side], rank),
      flops: rows[side] * rank * (rank + 1),
    },
  );
  if (!ofParts) return [stage];
  const add: TaskPlan = {
    kernel: 'add-rows',
    uses: { addend: { set: grams, part: 'column' }, sum: gram },
    params: { from: 0, to: rank },
  };
  const cut = { rows: places.length, columns: parts.length, of: gram };
  return [
    stage,
    { name: `allocate-gram-${side}`, at: places, work: { kind: 'allocate', data: [gram] } },
    {
      name: `gram-${side}`,
      at: places,
      work: { kind: 'blocks', tasks: [add], order: 'rows', seed: 0, grid: cut },
      kernel: 'add-rows',
      tasks: parts.length,
    },
  ];
}

/** Name of the pipeline that solves and gathers the parts of a side. */
export function pipelineName(side: Side): string {
  return `${side}-by-parts`;
}

function pipelineOf({ grid, places }: AlsProblem, side: Side): Pick<Stage, 'pipeline'> {
  return isPipelined(grid, side, places.length) ? { pipeline: pipelineName(side) } : {};
}

/**
 * Stages that measure the errors on the training set and the validation set, and the penalty of each side.
 *
 * The loss of implicit data is computed without m x n predictions: Σ w₀ (x_uᵀθ_v)² over all pairs from the
 * product of both Gram matrices; then a pass over the ratings corrects the observed pairs. If solving the users
 * computes that loss, its value already includes their penalty and all pairs, and a brief measurement skips
 * these stages.
 */
export function measureStagesOf(problem: AlsProblem): Stage[] {
  const { profile, testRatings, params } = problem;
  const implicit = params.implicitPrefs;
  const pass = passOf(problem);
  const brief = implicit && pass.brief ? { brief: pass.brief } : {};
  // With attributes the users' penalty changes after the solve: see solvedPenaltyStages.
  const briefUsers = profile.attributes?.users ? {} : brief;
  const name = implicit ? implicitStages.error : measureStages.train;
  const measured = [
    { ...errorStage(problem, name, 'ratings-by-user', profile.ratings), ...pass },
    { ...normStage(problem, 'users'), ...briefUsers },
    normStage(problem, 'items'),
    ...sides.flatMap((side) => coefficientNorms(problem, side)),
  ];
  if (!implicit)
    return testRatings === undefined
      ? measured
      : [...measured, errorStage(problem, measureStages.test, 'test-ratings', testRatings)];
  const data = sides.map((side) => implicitNames(side).gram);
  const grams = [...new Set(partPlaces(problem, 'users'))];
  return [
    ...measured,
    {
      name: implicitStages.grams,
      at: grams,
      work: { kind: 'exchange', how: 'move', data, to: 'host' },
      ...brief,
    },
    ...(testRatings === undefined ? [] : rankStages(problem)),
  ];
}

/**
 * Stage that sums e² and |e|, or for implicit data the corrections of the loss, over the ratings of the data
 * set `block`, which is sorted by user.
 */
function errorStage(problem: AlsProblem, name: string, block: string, ratings: number): Stage {
  const { params, rows, grid } = problem;
  const { rank, implicitPrefs } = params;
  const [users, items] = [sideNames('users', problem), sideNames('items', problem)];
  const biases: DataUses =
    users.bias && items.bias && items.wholeBias
      ? { rowBias: users.bias, columnBias: fixedUse(problem, 'users', items.wholeBias, items.bias) }
      : {};
  const columnFactors = fixedUse(problem, 'users', items.whole, items.factors);
  const task: TaskPlan = {
    kernel: implicitPrefs ? 'implicit-error' : 'squared-error',
    uses: { block, rowFactors: users.factors, columnFactors, ...biases },
    params: { rank, ...(implicitPrefs ? { ...implicitWeights(params) } : {}) },
  };
  return {
    name,
    at: ratingPlaces(problem, 'users'),
    work: overRatings(problem, 'users', block, [task]),
    kernel: task.kernel,
    tasks: tasksOfPart(problem, 'users', ratings),
    partitions: { p: verticalParts(grid, 'users'), q: grid.users.q },
    ...(implicitPrefs ? {} : { bytesRead: blockBytes(rows.users, ratings) }),
    flops: 2 * ratings * rank,
  };
}

/**
 * If solving the users computes the loss and users have attributes: the stage after the solve that measures
 * their penalty, which is part of that loss. Their coefficients are fitted afterwards, which changes it.
 */
export function solvedPenaltyStages(problem: AlsProblem, side: Side): Stage[] {
  if (!measuredOf(problem, side).measured || problem.profile.attributes?.[side] === undefined) return [];
  return [{ ...normStage(problem, side), name: measureStages.solved }];
}

/** Stage that sums the squared norms of a side's rows, from which the penalty is computed. */
function normStage(problem: AlsProblem, side: Side): Stage {
  const { params, grid } = problem;
  const { rank, regExponent, implicitPrefs } = params;
  const { bias, factors, lengths, ratings, totals } = sideNames(side, problem);
  const uses: DataUses = implicitPrefs
    ? { shifts: implicitNames(side).shifts, factors, ...priorUses(problem, side) }
    : {
        ...priorUses(problem, side),
        block: hasLengths(grid, side) ? lengths : ratings,
        factors,
        ...(bias ? { bias } : {}),
        ...(bias && side === 'items' && hasTotals(problem) ? { totals } : {}),
      };
  const exponent = implicitPrefs || regExponent === 1 ? {} : { exponent: regExponent };
  return taskStage(
    measureStages[side],
    partPlaces(problem, side),
    { kernel: 'weighted-norm', uses, params: { rank, ...exponent } },
    { tasks: tasksOfPart(problem, side) },
  );
}

/**
 * Stages that rank each validation pair among all items that the user has not rated in the training set, and
 * fetch the ranks.
 */
function rankStages(problem: AlsProblem): Stage[] {
  const { params, device, rows } = problem;
  const { rank } = params;
  const at = partPlaces(problem, 'users');
  const { metric, k = 1 } = parseMetric(rankingMetricOf(params) ?? 'auc', 'earlyStopMetric');
  // The top ranks that the metric distinguishes, such as 20 for ndcg@20; undefined if it needs all.
  const depth = depthOf([metric], [k]);
  const uses = {
    rowFactors: 'users',
    columnFactors: sideNames('items', problem).whole,
    listed: 'test-ratings',
    exclude: 'ratings-by-user',
    places: TEST_PLACES,
  };
  return [
    taskStage(
      implicitStages.ranks,
      at,
      { kernel: 'rank-listed', uses, params: { rank, ...(depth === undefined ? {} : { depth }) } },
      {
        tasks: rankSlices(Math.ceil(rows.users / at.length), device.wholePasses).length,
        partitions: { p: 1, q: at.length },
        reasons: [
          `${rankingMetricOf(params)} of the validation set: all items that a user has not rated are ranked`,
        ],
      },
    ),
    {
      name: implicitStages.places,
      at,
      work: { kind: 'exchange', how: 'move', data: [TEST_PLACES], to: 'host' },
    },
  ];
}
