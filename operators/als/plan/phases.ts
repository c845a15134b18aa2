import { formatBytes } from '../../../engine/format.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import { factorBytes } from '../../planner/sizes.ts';
import { taskCount } from '../../ratings/row-ranges.ts';
import { ratingBytes } from './data-sets.ts';
import { hasLengths, sides } from './grid.ts';
import { fixStages, hasTotals } from './half-iteration.ts';
import { type AlsProblem, sideNames } from './problem.ts';

/** Stages that send ratings to their places, draw users, and set items to zero. */
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

export function endStages(problem: AlsProblem): Stage[] {
  const data = sides.flatMap((side) => {
    const { factors, bias } = sideNames(side, problem);
    return [factors, ...(bias ? [bias] : [])];
  });
  return [
    { name: 'fetch-factors', at: problem.places, work: { kind: 'exchange', how: 'move', data, to: 'host' } },
  ];
}
