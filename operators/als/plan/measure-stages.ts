import type { DataUses, Stage } from '../../../engine/plan/stages.ts';
import { blockBytes } from '../../planner/sizes.ts';
import { measureStages } from '../../training/loss.ts';
import { implicitMeasure } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { hasLengths, type Side, verticalParts } from './grid.ts';
import { hasTotals, passOf } from './half-iteration.ts';
import {
  type AlsProblem,
  fixedUse,
  overRatings,
  partPlaces,
  ratingPlaces,
  sideNames,
  tasksOfPart,
} from './problem.ts';

/**
 * Stages that measure the errors on the training set and the validation set, and the penalty of each side.
 */
export function measureStagesOf(problem: AlsProblem): Stage[] {
  const { profile, testRatings, params } = problem;
  if (params.implicitPrefs) return implicitStages(problem);
  return [
    { ...errorStage(problem, measureStages.train, 'ratings-by-user', profile.ratings), ...passOf(problem) },
    normStage(problem, 'users'),
    normStage(problem, 'items'),
    ...(testRatings === undefined
      ? []
      : [errorStage(problem, measureStages.test, 'test-ratings', testRatings)]),
  ];
}

/** Stage that sums e² and |e| over the ratings of the data set `block`, which is sorted by user. */
function errorStage(problem: AlsProblem, name: string, block: string, ratings: number): Stage {
  const { params, rows } = problem;
  const [users, items] = [sideNames('users', problem), sideNames('items', problem)];
  const biases: DataUses =
    users.bias && items.bias && items.wholeBias
      ? { rowBias: users.bias, columnBias: fixedUse(problem, 'users', items.wholeBias, items.bias) }
      : {};
  const columnFactors = fixedUse(problem, 'users', items.whole, items.factors);
  return {
    name,
    at: ratingPlaces(problem, 'users'),
    work: overRatings(problem, 'users', block, [
      {
        kernel: 'squared-error',
        uses: { block, rowFactors: users.factors, columnFactors, ...biases },
        params: { rank: params.rank },
      },
    ]),
    kernel: 'squared-error',
    tasks: tasksOfPart(problem, 'users', ratings),
    partitions: partitionsOf(problem),
    bytesRead: blockBytes(rows.users, ratings),
    flops: 2 * ratings * params.rank,
  };
}

/** Stage that sums the squared norms of a side's rows, from which the penalty is computed. */
function normStage(problem: AlsProblem, side: Side): Stage {
  const { params, grid } = problem;
  const { bias, factors, lengths, ratings, totals } = sideNames(side, problem);
  const ofBiases: DataUses = bias
    ? { bias, ...(side === 'items' && hasTotals(problem) ? { totals } : {}) }
    : {};
  return {
    name: measureStages[side],
    at: partPlaces(problem, side),
    work: {
      kind: 'tasks',
      tasks: [
        {
          kernel: 'weighted-norm',
          uses: { block: hasLengths(grid, side) ? lengths : ratings, factors, ...ofBiases },
          params: {
            rank: params.rank,
            ...(params.regExponent === 1 ? {} : { exponent: params.regExponent }),
          },
        },
      ],
    },
    kernel: 'weighted-norm',
    tasks: tasksOfPart(problem, side),
  };
}

function implicitStages(problem: AlsProblem): Stage[] {
  const { profile, testRatings, params, device, rows } = problem;
  const [users, items] = [sideNames('users', problem), sideNames('items', problem)];
  const uses = {
    block: 'ratings-by-user',
    rowFactors: users.factors,
    columnFactors: fixedUse(problem, 'users', items.whole, items.factors),
  };
  const error = {
    at: ratingPlaces(problem, 'users'),
    work: overRatings(problem, 'users', 'ratings-by-user', [
      { kernel: 'implicit-error', uses, params: { rank: params.rank, ...implicitWeights(params) } },
    ]),
    ...passOf(problem),
    partitions: partitionsOf(problem),
  };
  return implicitMeasure(
    params,
    error,
    items.whole,
    { users: partPlaces(problem, 'users'), items: partPlaces(problem, 'items') },
    { users: tasksOfPart(problem, 'users'), items: tasksOfPart(problem, 'items') },
    profile.ratings,
    testRatings === undefined ? undefined : { users: rows.users, whole: device.wholePasses },
  );
}

function partitionsOf({ grid }: AlsProblem): NonNullable<Stage['partitions']> {
  return { p: verticalParts(grid, 'users'), q: grid.users.q };
}
