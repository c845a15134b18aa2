import type { DataPart, DataSet } from '../../../engine/plan/stages.ts';
import { HOST, type Place, SPILL } from '../../../engine/plan/place.ts';
import type { RatingsProfile } from '../../planner/profile.ts';
import { blockBytes } from '../../planner/sizes.ts';
import { evenRanges, sharedRanges } from '../../ratings/row-ranges.ts';
import { implicitDataSets, testPlaces } from '../implicit/stages.ts';
import { equationDataSets } from './equations.ts';
import {
  hasGramOfParts,
  hasLengths,
  isInBlocks,
  sharesOfParts,
  type Side,
  type SideGrid,
  sides,
  sumsOf,
  verticalParts,
} from './grid.ts';
import { hasTotals } from './half-iteration.ts';
import { vectorDataSets } from './vectors.ts';
import { allPlaces, type AlsProblem, blockPlaces, isHalfOnly, partPlaces, sideNames } from './problem.ts';

/** Rows of both sides and blocks of ratings in parts. The cuts are even until the data are known. */
export function alsDataSets(problem: AlsProblem): DataSet[] {
  const {
    profile: { ratings: nz },
    testRatings,
    params,
    compute,
    places,
    grid,
    rows,
  } = problem;
  const f = params.rank;
  const parts = (side: Side, part: (rows: number, places: readonly Place[]) => DataPart): DataPart[] => {
    const shares = sharesOfParts(grid[side]);
    const ranges =
      shares === undefined ? evenRanges(rows[side], grid[side].q) : sharedRanges(rows[side], shares);
    return allPlaces(problem, side).map((at, j) => part((ranges[j]?.to ?? 0) - (ranges[j]?.from ?? 0), at));
  };
  const ratings = (
    name: string,
    side: Side,
    count: number,
    home = homeOfRatings(grid[side].ratings),
  ): DataSet => {
    const p = verticalParts(grid, side);
    const shares = sharesOfParts(grid[side]);
    const rows = parts(side, (own) => ({ rows: own, at: [] })).flatMap((own) =>
      Array.from({ length: p }, () => own.rows),
    );
    const at = isInBlocks(grid, side)
      ? blockPlaces(problem, side).map((place) => [place])
      : allPlaces(problem, side);
    const all = at.map((places, k): DataPart => ({
      rows: rows[k],
      bytes: blockBytes(rows[k], Math.ceil((count * (shares?.[Math.floor(k / p)] ?? 1 / grid[side].q)) / p)),
      at: grid[side].ratings === 'device' ? [home, ...places] : [home],
    }));
    return {
      name,
      layout: 'rating-block',
      given: true,
      ...(isInBlocks(grid, side) ? { by: 'block' } : {}),
      parts: all,
    };
  };
  const factors = sides.flatMap((side): DataSet[] => {
    const names = sideNames(side, problem);
    const own = parts(side, (count, at) => ({
      rows: count,
      at: grid[side].factors === 'device' ? at : [HOST],
    }));
    const all: DataPart[] = [{ rows: rows[side], at: places }];
    const gathered = grid[side].fixed === 'whole' && names.whole !== names.factors;
    const given = (name: string, layout: string, numbers: (count: number) => number): DataSet => ({
      name,
      layout,
      given: true,
      parts: own.map(({ rows: count, at: [home] }) => ({
        rows: count,
        bytes: 4 * numbers(count),
        at: home === HOST ? [HOST] : [HOST, home],
      })),
    });
    return [
      { name: names.factors, layout: 'factors', columns: f, parts: own },
      ...(names.bias ? [{ name: names.bias, layout: 'bias', columns: 1, parts: own }] : []),
      ...(gathered
        ? [
            {
              name: names.whole,
              layout: 'factors',
              columns: f,
              derived: true,
              ...(isHalfOnly(problem, side) ? ({ half: 'only' } satisfies Partial<DataSet>) : {}),
              parts: all,
            },
          ]
        : []),
      ...(gathered && names.wholeBias
        ? [{ name: names.wholeBias, layout: 'bias', columns: 1, derived: true, parts: all }]
        : []),
      ...(hasLengths(grid, side) && !params.implicitPrefs
        ? [given(names.lengths, 'rating-block', (count) => count + 1)]
        : []),
      ...(side === 'items' && hasTotals(problem)
        ? [given(names.totals, 'row-totals', (count) => count)]
        : []),
      ...(isInBlocks(grid, side)
        ? (sumsOf(grid, side) === 'vectors' ? vectorDataSets : equationDataSets)(
            problem,
            side,
            own.map((part) => part.rows),
          )
        : []),
    ];
  });
  const tests = (count: number) =>
    partPlaces(problem, 'users').map((place) => ({
      rows: Math.ceil(count / grid.users.q),
      bytes: 4 * Math.ceil(count / grid.users.q),
      at: [place],
    }));
  return [
    ratings('ratings-by-user', 'users', nz),
    ratings('ratings-by-item', 'items', nz),
    ...(testRatings === undefined ? [] : [ratings('test-ratings', 'users', testRatings, HOST)]),
    {
      name: 'users-keys',
      layout: 'key-hashes',
      given: true,
      parts: parts('users', (own) => ({ rows: own, bytes: 8 * own, at: [HOST] })),
    },
    ...factors,
    ...(params.implicitPrefs
      ? implicitDataSets(f, places, parts, (side) =>
          hasGramOfParts(grid, side, places.length) ? partPlaces(problem, side) : [],
        )
      : []),
    ...(params.implicitPrefs && testRatings !== undefined
      ? [testPlaces(tests(testRatings), !compute[0].wholePasses)]
      : []),
  ];
}

/** The place at which ratings lie before the steps begin. */
function homeOfRatings(ratings: SideGrid['ratings']): Place {
  return ratings === 'spill' ? SPILL : HOST;
}

/** Bytes of all blocks of ratings. */
export function ratingBytes({ users, items, ratings, testRatings }: RatingsProfile): number {
  return (
    blockBytes(users, ratings) +
    blockBytes(items, ratings) +
    (testRatings === undefined ? 0 : blockBytes(users, testRatings))
  );
}
