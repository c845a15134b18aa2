import type { DataUse, Stage } from '../../../engine/plan/stages.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import type { Side } from './grid.ts';
import { stepsTaken } from './half-iteration.ts';
import { PartedSide } from './parted-side.ts';
import type { AlsProblem } from './problem.ts';

/**
 * Stages that solve the rows of a side from vertical parts of the fixed side without A. Devices exchange
 * vectors in each step of conjugate gradients (cuMF_ALS, Algorithm 1): 2 f numbers a row instead of f (f + 1)
 * / 2 for equations.
 */
export function vectorStages(problem: AlsProblem, side: Side): Stage[] {
  const { solver } = problem;
  const parted = new PartedSide(problem, side);
  const { solved, partitions } = parted;
  const takes = stepsTaken(problem).takes?.cgSteps;
  const repeats = { times: solver.cgSteps, ...(takes === undefined ? {} : { takes }) };
  const end = parted.overRows(
    `update-${side}`,
    {
      kernel: 'end-gradients',
      uses: {
        gradients: last(solved.gradients),
        direction: last(solved.direction),
        factors: { set: solved.factors, step: 'alone' },
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
  return parted.pipeline([...beginStages(problem, side, parted), ...steps, end]);
}

function last(set: string): DataUse {
  return { set, version: 'last' };
}

/** Stages for the gradients of the previous rows. */
function beginStages({ params, profile, solver }: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { rank: f, biases } = params;
  const { solved, several, sharing, partitions } = parted;
  const gradients = parted.bytes(gradientColumns(f, biases));
  const collected = several ? solved.allGradients : solved.gradients;
  const old: DataUse = { set: solved.factors, version: 'old' };
  const previous = several ? last(solved.allDirections) : old;
  return [
    ...parted.spread(`spread-${side}`, solved.factors),
    parted.zeros(`allocate-residuals-${side}`, collected),
    parted.overBlocks(
      `residuals-${side}`,
      { kernel: 'add-residuals', uses: { ...parted.fixed, previous, gradients: collected } },
      {
        flops: 4 * profile.ratings * f,
        bytesWritten: sharing * gradients,
        reasons: [
          `p = ${partitions.p}: each part of the fixed side multiplies its ratings by the vectors of its rows, ${solver.cgSteps + 1} times; no A is formed`,
        ],
      },
    ),
    ...parted.reduce(`reduce-residuals-${side}`, solved.allGradients, solved.gradients, gradients),
    parted.overRows(`begin-${side}`, {
      kernel: 'begin-gradients',
      uses: {
        previous: old,
        gradients: solved.gradients,
        factors: solved.factors,
        direction: solved.direction,
        ...parted.implicit,
      },
    }),
  ];
}

/** Stages for one step of conjugate gradients. */
function stepStages({ params, profile }: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { rank: f, biases } = params;
  const { solved, several, sharing } = parted;
  const [vector, gradients] = [parted.bytes(f), parted.bytes(gradientColumns(f, biases))];
  const products = several ? solved.allProducts : solved.products;
  const direction = several ? last(solved.allDirections) : solved.direction;
  return [
    ...parted.spread(`spread-directions-${side}`, solved.direction),
    parted.zeros(`allocate-products-${side}`, products),
    parted.overBlocks(
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
          factors: { set: solved.factors, step: 'alone' },
          direction: solved.direction,
          ...parted.implicit,
        },
      },
      { bytesRead: gradients + 3 * vector, bytesWritten: 3 * vector },
    ),
  ];
}
