import type { JsonObject } from '../../../engine/json.ts';
import type { Place } from '../../../engine/plan/place.ts';
import type { DataPart, DataSet, DataUses, Stage } from '../../../engine/plan/stages.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { implicitUses } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { otherSide, type Side, verticalParts } from './grid.ts';
import {
  heldBy,
  kernelOf,
  measuredOf,
  pipelineName,
  regularizationOf,
  stepsTaken,
} from './half-iteration.ts';
import { reduceStage } from './reduce.ts';
import { type AlsProblem, blockPlaces, overRatings, partPlaces, sideNames, tasksOfPart } from './problem.ts';

/** The places that hold parts of the fixed side while a side is solved. */
export function sharers(problem: AlsProblem, side: Side): Place[] {
  return [...new Set(partPlaces(problem, otherSide[side]))];
}

/**
 * The normal equations of a side that is solved from vertical parts: of each part of rows, one accumulator at
 * the only place, or one at each place of the fixed side, part s of the rows and place k being partition s d
 * + k, and their sum at the owner of the rows.
 *
 */
export function equationDataSets(problem: AlsProblem, side: Side, rows: readonly number[]): DataSet[] {
  const {
    params: { rank, biases },
  } = problem;
  const { equations, partials } = sideNames(side, problem);
  const owners = partPlaces(problem, side);
  const columns = equationColumns(rank, biases);
  const at = sharers(problem, side);
  const sums: DataSet = {
    name: equations,
    layout: 'factors',
    columns,
    derived: true,
    parts: owners.map((place, s): DataPart => ({ rows: rows[s], at: [place] })),
  };
  if (problem.places.length === 1) return [sums];
  const ofBlocks = blockPlaces(problem, side).map(
    (place, block) => Math.floor(block / verticalParts(problem.grid, side)) * at.length + at.indexOf(place),
  );
  return [
    {
      name: partials,
      layout: 'factors',
      columns,
      derived: true,
      by: 'block',
      ofBlocks,
      parts: rows.flatMap((own) => at.map((place): DataPart => ({ rows: own, at: [place] }))),
    },
    sums,
  ];
}

/**
 * The stages that solve the rows of a side from vertical parts of the fixed one: cuMF's data parallelism
 * (section 4.3, Algorithm 3).
 */
export function equationStages(problem: AlsProblem, side: Side): Stage[] {
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
  const choice = problem.choices?.[side];
  const { q } = grid[side];
  const p = verticalParts(grid, side);
  const sharing = sharers(problem, side).length;
  const reduces = problem.places.length > 1;
  const collected = reduces ? solved.partials : solved.equations;
  const kernel: JsonObject = { ...kernelOf(choice) };
  const weights = params.implicitPrefs ? { implicit: implicitWeights(params) } : {};
  const uses: DataUses = {
    block: solved.ratings,
    fixed: `${fixed.factors}@column`,
    ...(fixed.bias ? { fixedBias: `${fixed.bias}@column` } : {}),
    equations: collected,
  };
  const solves: DataUses = {
    equations: `${solved.equations}@last`,
    previous: `${solved.factors}@old`,
    factors: solved.factors,
    ...(solved.bias ? { bias: solved.bias } : {}),
    ...(params.implicitPrefs ? implicitUses(side, otherSide[side]) : {}),
  };
  const regularization = params.implicitPrefs ? { lambda: params.regParam } : regularizationOf(params, side);
  const bytes = factorBytes(rows[side], equationColumns(f, biases), device.strideStep);
  const stages: Stage[] = [
    { name: `allocate-equations-${side}`, at: problem.places, work: { kind: 'allocate', data: [collected] } },
    {
      name: `equations-${side}`,
      at: blockPlaces(problem, side),
      work: overRatings(problem, side, solved.ratings, [
        { kernel: 'normal-equations', uses, params: { rank: f, ...weights, ...kernel } },
      ]),
      kernel: ['normal-equations', choice?.variant].filter((part) => part !== undefined).join(' '),
      tasks: tasksOfPart(problem, side),
      partitions: { p, q },
      bytesRead: blockBytes(rows[side], nz) + q * factorBytes(rows[otherSide[side]], f, device.strideStep),
      bytesWritten: sharing * bytes,
      flops: nz * f * (f + 1),
      ...heldBy(choice, 1 / (p * q)),
      reasons: [
        `p = ${p}: each part of the fixed side adds its ratings to the normal equations of its rows`,
        ...(choice === undefined ? [] : [choice.reason]),
      ],
    },
  ];
  if (reduces)
    stages.push(
      reduceStage(problem, side, {
        name: `reduce-${side}`,
        data: collected,
        to: solved.equations,
        bytes,
        sharing,
      }),
    );
  stages.push({
    name: `update-${side}`,
    at: partPlaces(problem, side),
    work: {
      kind: 'tasks',
      tasks: [
        {
          kernel: 'solve-equations',
          uses: solves,
          params: {
            rank: f,
            ...regularization,
            cgBelow: solver.cgBelow,
            cgSteps: solver.cgSteps,
            nonnegative: params.nonnegative,
            ...measuredOf(problem, side),
            ...kernel,
          },
          ...stepsTaken(problem),
        },
      ],
    },
    kernel: `solve-equations ${solver.kernel}`,
    tasks: device.wholePasses ? 1 : tasksOfPart(problem, side),
    partitions: { p, q },
    bytesRead: bytes,
    bytesWritten: factorBytes(rows[side], f, device.strideStep),
    reasons: side === 'items' ? [solver.reason] : [],
  });
  // A part's equations live until it is solved.
  return stages.map((stage) => ({ ...stage, pipeline: pipelineName(side) }));
}
