import { formatBytes, formatMilliseconds } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataUses, Stage, TaskPlan, DataUse } from '../../../engine/plan/stages.ts';
import { taskStage } from '../../planner/load-stages.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import { implicitUses } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { solverParams } from '../solver-choice.ts';
import { priorUses } from './attribute-stages.ts';
import { reduceWay } from './cost.ts';
import {
  otherSide,
  type Side,
  verticalParts,
  stepsEverywhere,
  type AlsProblem,
  blockPlaces,
  overRatings,
  partPlaces,
  regularizationOf,
  sideNames,
  tasksOfPart,
  sumsOf,
  stepsTogether,
} from './problem.ts';
import { pipelineName, kernelMemory, kernelOf, measuredOf, stepsTaken } from './stages.ts';

/** Devices that hold parts of the other factor matrix, which is fixed while `side` is solved. */
export function placesOfFixedParts(problem: AlsProblem, side: Side): Place[] {
  return [...new Set(partPlaces(problem, otherSide[side]))];
}

/**
 * Builds the plan stages that solve one factor matrix (users or items) when the other one, which is fixed, is
 * cut into parts (vertical parts, in cuMF's terms). Each part gives partial sums for the solved rows, and the
 * sums of all parts are added: cuMF's data parallelism (section 4.3, Algorithm 3).
 */
export class PartedSide {
  readonly solved: ReturnType<typeof sideNames>;
  /** True if there are several devices, so that each has only partial sums. */
  readonly several: boolean;
  /** Number of devices that hold parts of the fixed side and compute partial sums. */
  readonly sharing: number;
  /** True if every device takes the CG steps of all rows. */
  readonly everywhere: boolean;
  /** Data set to which tasks add normal equations; with several devices, each has partial ones. */
  readonly collected: string;
  readonly partitions: { readonly p: number; readonly q: number };
  /** The fixed side as task inputs: each task reads the part that belongs to its block of ratings. */
  readonly fixed: DataUses;
  /** Task inputs for implicit data (Gram matrix and shifts); empty for explicit data. */
  readonly implicit: DataUses;
  readonly #problem: AlsProblem;
  readonly #side: Side;

  constructor(problem: AlsProblem, side: Side) {
    [this.#problem, this.#side] = [problem, side];
    const { factors, bias } = sideNames(otherSide[side], problem);
    this.solved = sideNames(side, problem);
    this.several = problem.places.length > 1;
    this.everywhere = stepsEverywhere(problem.grid, side);
    this.collected = this.several ? this.solved.partials : this.solved.equations;
    this.sharing = placesOfFixedParts(problem, side).length;
    this.partitions = { p: verticalParts(problem.grid, side), q: problem.grid[side].q };
    this.fixed = {
      fixed: { set: factors, part: 'column' },
      ...(bias ? { fixedBias: { set: bias, part: 'column' } } : {}),
    };
    this.implicit = problem.params.implicitPrefs ? implicitUses(side, otherSide[side]) : {};
  }

  /** Bytes of a matrix with one row for each row of the side. */
  bytes(columns: number, side = this.#side): number {
    return factorBytes(this.#problem.rows[side], columns, this.#problem.device.strideStep);
  }

  zeros(name: string, data: string): Stage {
    return { name, at: this.#problem.places, work: { kind: 'allocate', data: [data] } };
  }

  /** Stage that frees the data set `collected`. */
  free(name: string): Stage {
    return { name, at: this.#problem.places, work: { kind: 'free', data: [this.collected] } };
  }

  /**
   * Stage that runs a task on each block of ratings. A block has the ratings between one part of each side.
   */
  overBlocks(name: string, { kernel, uses, params }: TaskPlan, more: Partial<Stage>): Stage {
    const { params: given, profile, rows } = this.#problem;
    const block = this.solved.ratings;
    const weights = given.implicitPrefs ? { implicit: implicitWeights(given) } : {};
    const task = { kernel, uses: { block, ...uses }, params: { rank: given.rank, ...weights, ...params } };
    return {
      name,
      at: blockPlaces(this.#problem, this.#side),
      work: overRatings(this.#problem, this.#side, block, [task]),
      kernel,
      tasks: tasksOfPart(this.#problem, this.#side),
      partitions: this.partitions,
      bytesRead:
        blockBytes(rows[this.#side], profile.ratings) +
        this.partitions.q * this.bytes(given.rank, otherSide[this.#side]),
      ...more,
    };
  }

  /**
   * Stage in which each device runs a task on its partial equations, once for each part of the solved rows.
   */
  overEquations(name: string, { kernel, uses }: TaskPlan, more: Partial<Stage>): Stage {
    const { params, rows } = this.#problem;
    const places = placesOfFixedParts(this.#problem, this.#side);
    const { q } = this.partitions;
    const at = Array.from({ length: q }, () => places).flat();
    const task = { kernel, uses: { equations: this.collected, ...uses }, params: { rank: params.rank } };
    return taskStage(name, at, task, {
      tasks: q,
      bytesRead: this.sharing * this.bytes(equationColumns(params.rank, params.biases)),
      flops: 2 * this.sharing * rows[this.#side] * params.rank ** 2,
      ...more,
    });
  }

  /** Stage that runs a task on each part of the solved rows, on each device that takes the part's steps. */
  overRows(name: string, task: TaskPlan, more: Partial<Stage> = {}): Stage {
    const { params, device } = this.#problem;
    const weights = params.implicitPrefs ? { lambda: params.regParam } : regularizationOf(params, this.#side);
    const at = this.everywhere ? this.#problem.places : partPlaces(this.#problem, this.#side);
    return taskStage(
      name,
      at,
      { ...task, params: { rank: params.rank, ...weights, ...task.params } },
      { tasks: device.wholePasses ? 1 : tasksOfPart(this.#problem, this.#side), ...more },
    );
  }

  /** Stage that sends one vector per row from the row's owner to all devices; none for a single device. */
  spread(name: string, data: string): Stage[] {
    if (!this.several) return [];
    const bytes = this.bytes(this.#problem.params.rank);
    const stage: Stage = {
      name,
      at: partPlaces(this.#problem, this.#side),
      work: { kind: 'exchange', how: 'spread', data: [data], to: [this.solved.allDirections] },
      exchange: `spread: ${formatBytes(bytes)} down, ${formatBytes((this.sharing - 1) * bytes)} up`,
    };
    return [stage];
  }

  /**
   * Stage that adds the partial sums of all devices (`bytes` on each device) and leaves each part's sum on
   * the device that owns the part. The reduction has two phases if that takes less time or was requested (see
   * reduceWay). Returns no stage for a single device.
   */
  reduce(name: string, data: string, to: string, bytes: number): Stage[] {
    if (!this.several) return [];
    const { groups, seconds, onePhase } = reduceWay(this.#problem, bytes);
    const owners = this.everywhere ? this.sharing : 1;
    const moved = `${formatBytes(owners * (this.sharing - 1) * bytes)} down and up`;
    const called = this.everywhere ? 'reduce to all' : 'reduce-scatter';
    const stage: Stage = {
      name,
      at: partPlaces(this.#problem, this.#side),
      work: {
        kind: 'exchange',
        how: 'reduce-scatter',
        data: [data],
        to: [to],
        ...(groups ? { groups } : {}),
      },
      exchange: groups ? `${called} in two phases: ${moved}` : `${called}: ${moved}`,
    };
    if (groups === undefined) return [stage];
    const reason =
      `partial sums are added inside ${groups.map((group) => group.join(' ')).join(' and ')} before ` +
      `they are sent between the groups: about ${formatMilliseconds(1000 * seconds)}, and ` +
      `${formatMilliseconds(1000 * onePhase)} in one phase`;
    return [{ ...stage, reasons: [reason] }];
  }

  /**
   * Puts the stages into one pipeline: a part of the rows goes through all of them before later parts do, so
   * the sums of a part are in memory only until its rows are solved.
   */
  pipeline(stages: readonly Stage[]): Stage[] {
    return stages.map((stage) => ({ ...stage, pipeline: pipelineName(this.#side) }));
  }
}

/** Stages that allocate the normal equations and add the ratings of each part of the fixed side to them. */
export function formingStages(problem: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { params, profile, choices } = problem;
  const { rank: f, biases } = params;
  const { collected, partitions, sharing } = parted;
  const { p, q } = partitions;
  const choice = choices?.[side];
  const bytes = parted.bytes(equationColumns(f, biases));
  return [
    parted.zeros(`allocate-equations-${side}`, collected),
    parted.overBlocks(
      `equations-${side}`,
      {
        kernel: 'normal-equations',
        uses: { ...parted.fixed, equations: collected },
        params: { ...kernelOf(choice) },
      },
      {
        kernel: ['normal-equations', choice?.variant].filter((part) => part !== undefined).join(' '),
        bytesWritten: sharing * bytes,
        flops: profile.ratings * f * (f + 1),
        ...kernelMemory(choice, 1 / (p * q)),
        reasons: [
          `p = ${p}: each part of the fixed side adds its ratings to the normal equations of its rows`,
          ...(choice === undefined ? [] : [choice.reason]),
        ],
      },
    ),
  ];
}

/**
 * Stages that form the (partial) normal equations of a side's rows, add them up over all devices, and solve
 * them.
 */
export function equationStages(problem: AlsProblem, side: Side): Stage[] {
  const { params, solver, choices } = problem;
  const { rank: f, biases } = params;
  const parted = new PartedSide(problem, side);
  const { solved, partitions, collected } = parted;
  const kernel: JsonObject = { ...kernelOf(choices?.[side]) };
  const bytes = parted.bytes(equationColumns(f, biases));
  return parted.pipeline([
    ...formingStages(problem, side, parted),
    ...parted.reduce(`reduce-${side}`, collected, solved.equations, bytes),
    parted.overRows(
      `update-${side}`,
      {
        kernel: 'solve-equations',
        uses: {
          equations: { set: solved.equations, version: 'last' },
          previous: { set: solved.factors, version: 'old' },
          factors: solved.factors,
          ...(solved.bias ? { bias: solved.bias } : {}),
          ...parted.implicit,
          ...priorUses(problem, side),
        },
        params: { ...solverParams(solver), ...measuredOf(problem, side), ...kernel },
        ...stepsTaken(problem),
      },
      {
        kernel: `solve-equations ${solver.kernel}`,
        partitions,
        bytesRead: bytes,
        bytesWritten: parted.bytes(f),
        reasons: side === 'items' ? [solver.reason] : [],
      },
    ),
  ]);
}

/**
 * Names of the stages that multiply each device's partial equations by vectors: for the residuals, and for
 * the product in each step.
 */
export function equationVectorStages(side: Side): readonly [residuals: string, products: string] {
  return [`equation-residuals-${side}`, `equation-products-${side}`];
}

/**
 * Stages that solve a side's rows by conjugate gradients (cuMF_ALS, Algorithm 1) when the fixed side is cut
 * into vertical parts. In each step every device multiplies the rows' directions by its share of A, and the
 * products are added over all devices. So a row costs 2 f numbers per step, instead of f (f + 1) / 2 numbers
 * for exchanging its equations. A device multiplies by its ratings directly, without forming A, or by partial
 * equations that it forms once per half-iteration.
 */
export function vectorStages(problem: AlsProblem, side: Side): Stage[] {
  const { solver } = problem;
  const parted = new PartedSide(problem, side);
  const { solved, partitions } = parted;
  const takes = stepsTaken(problem).takes?.cgSteps;
  const together = stepsTogether(problem, side);
  const repeats = {
    times: solver.cgSteps,
    ...(takes === undefined ? {} : { takes }),
    ...(together ? { together } : {}),
  };
  const end = parted.overRows(
    `update-${side}`,
    {
      kernel: 'end-gradients',
      uses: {
        gradients: last(solved.gradients),
        direction: last(solved.direction),
        factors: { set: solutionOf(problem, side), step: 'alone' },
        ...(solved.bias ? { bias: solved.bias } : {}),
      },
    },
    {
      kernel: `end-gradients ${solver.kernel}`,
      partitions,
      bytesWritten: parted.bytes(problem.params.rank),
      reasons: side === 'items' ? [solver.reason] : [],
    },
  );
  const steps = stepStages(problem, side, parted).map((stage) => ({ ...stage, repeats }));
  const forms = sumsOf(problem.grid, side) === 'partial-equations';
  return parted.pipeline([
    ...(forms ? formingStages(problem, side, parted) : []),
    ...beginStages(problem, side, parted),
    ...steps,
    end,
    ...storeStages(problem, side, parted),
    ...(forms ? [parted.free(`free-equations-${side}`)] : []),
  ]);
}

/** The data set in which rows are solved: their own, or one at the device if their home is a file. */
function solutionOf(problem: AlsProblem, side: Side): string {
  const { factors, solution } = sideNames(side, problem);
  return problem.grid[side].factors === 'spill' ? solution : factors;
}

/** Stages that write solved rows to files. */
function storeStages(problem: AlsProblem, side: Side, { solved }: PartedSide): Stage[] {
  if (problem.grid[side].factors !== 'spill') return [];
  const at = partPlaces(problem, side);
  const [data, to] = [[solved.solution], [solved.factors]];
  return [
    { name: `store-${side}`, at, work: { kind: 'exchange', how: 'spread', data, to } },
    { name: `free-solution-${side}`, at, work: { kind: 'free', data } },
  ];
}

function last(set: string): DataUse {
  return { set, version: 'last' };
}

/**
 * Stages before the first step: the residuals b - A x of the previous factors, which are also the first
 * directions.
 */
function beginStages(problem: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { rank: f, biases } = problem.params;
  const { solved, several, everywhere } = parted;
  const gradients = parted.bytes(gradientColumns(f, biases));
  const collected = several ? solved.allGradients : solved.gradients;
  const old: DataUse = { set: solved.factors, version: 'old' };
  const previous = several && !everywhere ? last(solved.allDirections) : old;
  return [
    ...(everywhere ? [] : parted.spread(`spread-${side}`, solved.factors)),
    parted.zeros(`allocate-residuals-${side}`, collected),
    residualStage(problem, side, parted, { previous, gradients: collected }),
    ...parted.reduce(`reduce-residuals-${side}`, solved.allGradients, solved.gradients, gradients),
    parted.overRows(`begin-${side}`, {
      kernel: 'begin-gradients',
      uses: {
        previous: old,
        gradients: solved.gradients,
        factors: solutionOf(problem, side),
        direction: solved.direction,
        ...parted.implicit,
      },
    }),
  ];
}

/** The stage that computes each device's contribution to the residuals of the rows `previous`. */
function residualStage(
  { params: { rank: f, biases }, profile, solver, grid }: AlsProblem,
  side: Side,
  parted: PartedSide,
  uses: DataUses,
): Stage {
  const { p } = parted.partitions;
  const bytesWritten = parted.sharing * parted.bytes(gradientColumns(f, biases));
  const times = solver.cgSteps + 1;
  if (sumsOf(grid, side) === 'partial-equations')
    return parted.overEquations(
      equationVectorStages(side)[0],
      { kernel: 'equation-residuals', uses },
      {
        bytesWritten,
        reasons: [
          `p = ${p}: each device multiplies its partial equations by the vectors of the rows, ${times} times`,
        ],
      },
    );
  return parted.overBlocks(
    `residuals-${side}`,
    { kernel: 'add-residuals', uses: { ...parted.fixed, ...uses } },
    {
      flops: 4 * profile.ratings * f,
      bytesWritten,
      reasons: [
        `p = ${p}: each part of the fixed side multiplies its ratings by the vectors of its rows, ` +
          `${times} times; no A is formed`,
      ],
    },
  );
}

/**
 * The stages of one step of conjugate gradients: send directions, multiply by A, add products, update the
 * rows.
 */
function stepStages(problem: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { params, profile, grid } = problem;
  const { rank: f, biases } = params;
  const { solved, several, everywhere, sharing } = parted;
  const forms = sumsOf(grid, side) === 'partial-equations';
  const [vector, gradients] = [parted.bytes(f), parted.bytes(gradientColumns(f, biases))];
  const products = several ? solved.allProducts : solved.products;
  const direction = several && !everywhere ? last(solved.allDirections) : solved.direction;
  return [
    ...(everywhere ? [] : parted.spread(`spread-directions-${side}`, solved.direction)),
    parted.zeros(`allocate-products-${side}`, products),
    forms
      ? parted.overEquations(
          equationVectorStages(side)[1],
          { kernel: 'equation-products', uses: { direction, products } },
          { bytesWritten: sharing * vector },
        )
      : parted.overBlocks(
          `products-${side}`,
          { kernel: 'add-products', uses: { fixed: parted.fixed.fixed, direction, products } },
          { flops: 4 * profile.ratings * f, bytesWritten: sharing * vector },
        ),
    ...parted.reduce(`reduce-products-${side}`, solved.allProducts, solved.products, vector),
    parted.overRows(
      `step-${side}`,
      {
        kernel: 'step-gradients',
        uses: {
          products: last(solved.products),
          gradients: solved.gradients,
          factors: { set: solutionOf(problem, side), step: 'alone' },
          direction: solved.direction,
          ...parted.implicit,
        },
      },
      { bytesRead: gradients + 3 * vector, bytesWritten: 3 * vector },
    ),
  ];
}
