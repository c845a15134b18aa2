import type { JsonObject } from '../../../engine/json.ts';
import { rankWarnings } from '../../evaluation/rating-warnings.ts';
import { rankingReasons } from '../../params/common.ts';
import { forSides } from '../../params/table.ts';
import { factorStride } from '../../planner/sizes.ts';
import type { SizedAlsParams } from '../implicit/sized-params.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import { type AlsGrid, isInBlocks, type Side, sides, sumsOf, verticalParts } from './grid.ts';
import { type AlsProblem, tasksOfPart } from './problem.ts';

/** Facts about data and parameters, for the head of a printed plan. */
export function describeProblem({
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
export function planReasons(problem: AlsProblem): string[] {
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
