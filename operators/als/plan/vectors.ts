import { formatBytes } from '../../../engine/format.ts';
import type { JsonObject } from '../../../engine/json.ts';
import type { DataPart, DataSet, DataUses, Stage, TaskPlan } from '../../../engine/plan/stages.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import { implicitUses } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { sharers } from './equations.ts';
import { otherSide, type Side, verticalParts } from './grid.ts';
import { pipelineName, regularizationOf, stepsTaken } from './half-iteration.ts';
import { reduceStage } from './reduce.ts';
import { type AlsProblem, blockPlaces, overRatings, partPlaces, sideNames, tasksOfPart } from './problem.ts';

/**
 * The names of the data sets of a side that is solved by vectors. `all...`: at each place of the fixed side,
 * where there are several devices.
 */
export function vectorNames(side: Side) {
  return {
    gradients: `${side}-gradients`,
    direction: `${side}-direction`,
    products: `${side}-products`,
    allGradients: `${side}-gradients-of-parts`,
    allDirections: `${side}-directions`,
    allProducts: `${side}-products-of-parts`,
  } as const;
}

/**
 * The vectors of a side that is solved from vertical parts without A: of each part of rows at its owner, and
 * of several devices at each place of the fixed side.
 */
export function vectorDataSets(problem: AlsProblem, side: Side, rows: readonly number[]): DataSet[] {
  const {
    params: { rank, biases },
  } = problem;
  const { gradients, direction, products, allGradients, allDirections, allProducts } = vectorNames(side);
  const owners = partPlaces(problem, side);
  const at = sharers(problem, side);
  const ofBlocks = blockPlaces(problem, side).map(
    (place, block) => Math.floor(block / verticalParts(problem.grid, side)) * at.length + at.indexOf(place),
  );
  const own = (name: string, columns: number): DataSet => ({
    name,
    layout: 'factors',
    columns,
    derived: true,
    parts: owners.map((place, s): DataPart => ({ rows: rows[s], at: [place] })),
  });
  const all = (name: string, columns: number): DataSet => ({
    name,
    layout: 'factors',
    columns,
    derived: true,
    by: 'block',
    ofBlocks,
    parts: rows.flatMap((count) => at.map((place): DataPart => ({ rows: count, at: [place] }))),
  });
  const columns = gradientColumns(rank, biases);
  return [
    own(gradients, columns),
    own(direction, rank),
    own(products, rank),
    ...(problem.places.length === 1
      ? []
      : [all(allGradients, columns), all(allDirections, rank), all(allProducts, rank)]),
  ];
}

/**
 * The stages that solve the rows of a side from vertical parts of the fixed one without A: data parallelism
 * (cuMF, section 4.3 and Algorithm 3) whose devices exchange vectors in each step of conjugate gradients
 * (cuMF_ALS, Algorithm 1), 2 f numbers a row, in place of f (f + 1) / 2 of equations.
 *
 */
export function vectorStages(problem: AlsProblem, side: Side): Stage[] {
  const {
    params,
    profile: { ratings: nz },
    rows,
    grid,
    device,
    solver,
  } = problem;
  const { rank: f, biases } = params;
  const [solved, fixed] = [sideNames(side, problem), sideNames(otherSide[side], problem)];
  const names = vectorNames(side);
  const { q } = grid[side];
  const p = verticalParts(grid, side);
  const sharing = sharers(problem, side).length;
  const several = problem.places.length > 1;
  const [owners, blocks] = [partPlaces(problem, side), blockPlaces(problem, side)];
  const weights = params.implicitPrefs ? { implicit: implicitWeights(params) } : {};
  const shifted = params.implicitPrefs ? implicitUses(side, otherSide[side]) : {};
  const regularization = params.implicitPrefs ? { lambda: params.regParam } : regularizationOf(params, side);
  const vector = factorBytes(rows[side], f, device.strideStep);
  const gradients = factorBytes(rows[side], gradientColumns(f, biases), device.strideStep);
  const gathered = blockBytes(rows[side], nz) + q * factorBytes(rows[otherSide[side]], f, device.strideStep);
  const collected = {
    gradients: several ? names.allGradients : names.gradients,
    products: several ? names.allProducts : names.products,
  };
  const overBlocks = (name: string, task: TaskPlan): Stage => ({
    name,
    at: blocks,
    work: overRatings(problem, side, solved.ratings, [task]),
    kernel: task.kernel,
    tasks: tasksOfPart(problem, side),
    partitions: { p, q },
    bytesRead: gathered,
    flops: 4 * nz * f,
  });
  const overRows = (name: string, kernel: string, uses: DataUses): Stage => ({
    name,
    at: owners,
    work: {
      kind: 'tasks',
      tasks: [{ kernel, uses, params: { rank: f, ...regularization } satisfies JsonObject }],
    },
    kernel,
    tasks: device.wholePasses ? 1 : tasksOfPart(problem, side),
  });
  const allocate = (name: string, data: string): Stage => ({
    name,
    at: problem.places,
    work: { kind: 'allocate', data: [data] },
  });
  const spread = (name: string, data: string): Stage[] =>
    several
      ? [
          {
            name,
            at: owners,
            work: { kind: 'exchange', how: 'spread', data: [data], to: [names.allDirections] },
            exchange: `spread: ${formatBytes(vector)} down, ${formatBytes((sharing - 1) * vector)} up`,
          },
        ]
      : [];
  const reduce = (name: string, data: string, to: string, bytes: number): Stage[] =>
    several ? [reduceStage(problem, side, { name, data, to, bytes, sharing })] : [];
  const residuals: DataUses = {
    block: solved.ratings,
    fixed: `${fixed.factors}@column`,
    ...(fixed.bias ? { fixedBias: `${fixed.bias}@column` } : {}),
    previous: several ? `${names.allDirections}@last` : `${solved.factors}@old`,
    gradients: collected.gradients,
  };
  const begin: Stage[] = [
    ...spread(`spread-${side}`, solved.factors),
    allocate(`allocate-residuals-${side}`, collected.gradients),
    {
      ...overBlocks(`residuals-${side}`, {
        kernel: 'add-residuals',
        uses: residuals,
        params: { rank: f, ...weights },
      }),
      bytesWritten: sharing * gradients,
      reasons: [
        `p = ${p}: each part of the fixed side multiplies its ratings by the vectors of its rows, ${solver.cgSteps + 1} times; no A is formed`,
      ],
    },
    ...reduce(`reduce-residuals-${side}`, names.allGradients, names.gradients, gradients),
    overRows(`begin-${side}`, 'begin-gradients', {
      previous: `${solved.factors}@old`,
      gradients: names.gradients,
      factors: solved.factors,
      direction: names.direction,
      ...shifted,
    }),
  ];
  const takes = stepsTaken(problem).takes?.cgSteps;
  const repeats = { times: solver.cgSteps, ...(takes === undefined ? {} : { takes }) };
  const step: Stage[] = [
    ...spread(`spread-directions-${side}`, names.direction),
    allocate(`allocate-products-${side}`, collected.products),
    {
      ...overBlocks(`products-${side}`, {
        kernel: 'add-products',
        uses: {
          block: solved.ratings,
          fixed: `${fixed.factors}@column`,
          direction: several ? `${names.allDirections}@last` : names.direction,
          products: collected.products,
        },
        params: { rank: f, ...weights },
      }),
      bytesWritten: sharing * vector,
    },
    ...reduce(`reduce-products-${side}`, names.allProducts, names.products, vector),
    {
      ...overRows(`step-${side}`, 'step-gradients', {
        products: `${names.products}@last`,
        gradients: names.gradients,
        factors: `${solved.factors}@here`,
        direction: names.direction,
        ...shifted,
      }),
      bytesRead: gradients + 3 * vector,
      bytesWritten: 3 * vector,
    },
  ];
  const end: Stage = {
    ...overRows(`update-${side}`, 'end-gradients', {
      gradients: `${names.gradients}@last`,
      direction: `${names.direction}@last`,
      factors: `${solved.factors}@here`,
      ...(solved.bias ? { bias: solved.bias } : {}),
    }),
    kernel: `end-gradients ${solver.kernel}`,
    partitions: { p, q },
    bytesWritten: vector,
    reasons: side === 'items' ? [solver.reason] : [],
  };
  // A part's vectors live until its rows are solved.
  return [...begin, ...step.map((stage) => ({ ...stage, repeats })), end].map((stage) => ({
    ...stage,
    pipeline: pipelineName(side),
  }));
}
