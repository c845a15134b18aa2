import { formatBytes } from '../../../engine/format.ts';
import type { DataUses, Stage } from '../../../engine/plan/stages.ts';
import { blockBytes, factorBytes } from '../../planner/sizes.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import { measureStages } from '../../training/loss.ts';
import { implicitMeasure } from '../implicit/stages.ts';
import { implicitWeights } from '../implicit/weights.ts';
import { ratingBytes } from './data-sets.ts';
import { hasLengths, type Side, sides, verticalParts } from './grid.ts';
import { fixStages, hasTotals, passOf } from './half-iteration.ts';
import {
  type AlsProblem,
  fixedUse,
  overRatings,
  partPlaces,
  ratingPlaces,
  sideNames,
  tasksOfPart,
} from './problem.ts';

/** The ratings go to their places, users are drawn, and items begin as zeros. */
export function startStages(problem: AlsProblem): Stage[] {
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

/** The errors on the training set and on a validation set, and the terms of the penalty. */
export function measuring(problem: AlsProblem): Stage[] {
  const {
    profile: { ratings: nz },
    testRatings,
    params,
    device,
    rows,
  } = problem;
  const [users, items] = sides.map((side) => sideNames(side, problem));
  if (params.implicitPrefs) {
    const tasks = { users: tasksOfPart(problem, 'users'), items: tasksOfPart(problem, 'items') };
    const uses = {
      block: 'ratings-by-user',
      rowFactors: users.factors,
      columnFactors: fixedUse(problem, 'users', items.whole, items.factors),
    };
    const work = overRatings(problem, 'users', 'ratings-by-user', [
      { kernel: 'implicit-error', uses, params: { rank: params.rank, ...implicitWeights(params) } },
    ]);
    const error = {
      at: ratingPlaces(problem, 'users'),
      work,
      ...passOf(problem),
      partitions: { p: verticalParts(problem.grid, 'users'), q: problem.grid.users.q },
    };
    return implicitMeasure(
      params,
      error,
      items.whole,
      { users: partPlaces(problem, 'users'), items: partPlaces(problem, 'items') },
      tasks,
      nz,
      testRatings === undefined ? undefined : { users: rows.users, whole: device.wholePasses },
    );
  }
  const columnFactors = fixedUse(problem, 'users', items.whole, items.factors);
  const biases: DataUses =
    users.bias && items.bias && items.wholeBias
      ? { rowBias: users.bias, columnBias: fixedUse(problem, 'users', items.wholeBias, items.bias) }
      : {};
  const errors = (name: string, block: string, ratings: number): Stage => ({
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
    partitions: { p: verticalParts(problem.grid, 'users'), q: problem.grid.users.q },
    bytesRead: blockBytes(rows.users, ratings),
    flops: 2 * ratings * params.rank,
  });
  const norm = (side: Side): Stage => {
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
            uses: { block: hasLengths(problem.grid, side) ? lengths : ratings, factors, ...ofBiases },
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
  };
  return [
    { ...errors(measureStages.train, 'ratings-by-user', nz), ...passOf(problem) },
    norm('users'),
    norm('items'),
    ...(testRatings === undefined ? [] : [errors(measureStages.test, 'test-ratings', testRatings)]),
  ];
}

export function endStages(problem: AlsProblem): Stage[] {
  const data = sides.flatMap((side) => {
    const { factors, bias } = sideNames(side, problem);
    return [factors, ...(bias ? [bias] : [])];
  });
  return [
    { name: 'fetch-factors', at: problem.places, work: { kind: 'exchange', how: 'move', data, to: 'host' } },
  ];
}
