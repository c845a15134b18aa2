import type { DataUse, DataUses, Stage } from '../../../engine/plan/stages.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import { formingStages } from './equations.ts';
import { type Side, sumsOf } from './grid.ts';
import { stepsTaken } from './half-iteration.ts';
import { PartedSide } from './parted-side.ts';
import { type AlsProblem, partPlaces, sideNames, stepsTogether } from './problem.ts';

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
