import { HOST, type Place, SPILL } from '../../../engine/plan/place.ts';
import type { DataPart } from '../../../engine/plan/stages.ts';
import { type RatingsProfile, blockBytes } from '../../planner/sizes.ts';
import type { BlockSize } from '../../ratings/ratings.ts';
import { evenRanges, sharedRanges } from '../../ratings/row-ranges.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import { gradientColumns } from '../../tasks/vector-tasks.ts';
import { implicitNames, TEST_PLACES } from '../implicit/stages.ts';
import { attributeSets } from './attribute-stages.ts';
import { placesOfFixedParts } from './parted-side.ts';
import {
  type AlsGrid,
  hasGramOfParts,
  hasLengths,
  isInBlocks,
  sharesOfParts,
  type Side,
  sides,
  sumsOf,
  verticalParts,
  allPlaces,
  type AlsDataSet,
  type AlsProblem,
  type GivenRole,
  blockPlaces,
  isHalfOnly,
  isSentInEightBits,
  partPlaces,
  sideNames,
} from './problem.ts';
import { hasTotals } from './stages.ts';

/**
 * Sizes of the parts of all data sets. They are estimated when a plan is made, and exact when it is bound to
 * ratings.
 */
export interface AlsSizes {
  /** Number of rows in each part of a side. */
  readonly rows: Readonly<Record<Side, readonly number[]>>;
  /** The ratings sorted by each side: one entry for each part, or for each block in row-major order. */
  readonly ratings: Readonly<Record<Side, readonly BlockSize[]>>;
  readonly tests?: readonly BlockSize[] | undefined;
}

/**
 * Estimated sizes, assuming that rows and ratings are divided evenly, or by the shares in the grid. If
 * `shown` has fewer equal parts than the grid, only that number of parts is returned, each of the size that
 * it has in the grid.
 */
export function estimatedSizes(
  { profile, testRatings, grid, rows }: AlsProblem,
  shown: AlsGrid = grid,
): AlsSizes {
  const lengths = (side: Side): number[] => {
    const { q } = grid[side];
    const shares = sharesOfParts(grid[side]);
    if (shares === undefined && shown !== grid)
      return Array.from({ length: shown[side].q }, () => Math.ceil(rows[side] / q));
    const ranges = shares === undefined ? evenRanges(rows[side], q) : sharedRanges(rows[side], shares);
    return Array.from({ length: q }, (_, j) => (ranges[j]?.to ?? 0) - (ranges[j]?.from ?? 0));
  };
  const own = { users: lengths('users'), items: lengths('items') };
  const blocks = (side: Side, count = profile.ratings): BlockSize[] => {
    const shares = sharesOfParts(grid[side]);
    return own[side].flatMap((part, j) => {
      const ratings = (count * (shares?.[j] ?? 1 / grid[side].q)) / verticalParts(grid, side);
      const block = { rows: part, ratings: Math.ceil(ratings) };
      return Array.from({ length: verticalParts(shown, side) }, () => block);
    });
  };
  return {
    rows: own,
    ratings: { users: blocks('users'), items: blocks('items') },
    tests: testRatings === undefined ? undefined : blocks('users', testRatings),
  };
}

/** All data sets of an ALS plan: ratings, factors, biases, sums, and the data of implicit ALS. */
export function alsDataSets(problem: AlsProblem, { rows, ratings, tests }: AlsSizes): AlsDataSet[] {
  const { params, places } = problem;
  const keys = rows.users.map((own) => ({ rows: own, bytes: 8 * own, at: [HOST] }));
  return [
    ...sides.map((side) => {
      const home = problem.grid[side].ratings === 'spill' ? SPILL : HOST;
      return ratedSet(problem, side, ratings[side], {
        name: sideNames(side, problem).ratings,
        role: 'ratings',
        home,
      });
    }),
    ...(tests
      ? [ratedSet(problem, 'users', tests, { name: 'test-ratings', role: 'tests', home: HOST })]
      : []),
    { name: 'users-keys', role: 'keys', side: 'users', layout: 'key-hashes', given: true, parts: keys },
    ...sides.flatMap((side) => [
      ...sideSets(problem, side, rows[side]),
      ...(isInBlocks(problem.grid, side) ? sumSets(problem, side, rows[side]) : []),
      ...(params.implicitPrefs ? implicitSets(problem, side, rows[side]) : []),
      ...attributeSets(problem, side, rows[side]),
    ]),
    ...(params.implicitPrefs && tests
      ? [
          {
            name: TEST_PLACES,
            role: 'places',
            side: 'users',
            layout: 'places',
            derived: true,
            // Rank and ties of each pair. Tasks on slices of the users write into one array. A device that
            // runs a whole pass as one task returns them as the task's result instead.
            ...(problem.device.wholePasses ? {} : { columns: 2 }),
            parts: tests.map(({ ratings: own }, j) => ({
              rows: own,
              bytes: 8 * own,
              at: [allPlaces(problem, 'users')[j]?.[0] ?? places[0]],
            })),
          } satisfies AlsDataSet,
        ]
      : []),
  ];
}

/** Data set of ratings sorted by a side's rows: the training set or the validation set. */
function ratedSet(
  problem: AlsProblem,
  side: Side,
  blocks: readonly BlockSize[],
  { name, role, home }: { readonly name: string; readonly role: GivenRole; readonly home: Place },
): AlsDataSet {
  const inBlocks = isInBlocks(problem.grid, side);
  const places = inBlocks ? blockPlaces(problem, side).map((place) => [place]) : allPlaces(problem, side);
  const stays = problem.grid[side].ratings === 'device';
  return {
    name,
    role,
    side,
    layout: 'rating-block',
    given: true,
    ...(inBlocks ? { by: 'block' } : {}),
    parts: blocks.map(({ rows, ratings }, k) => ({
      rows,
      bytes: blockBytes(rows, ratings),
      at: stays ? [home, ...places[k]] : [home],
    })),
  };
}

/** Data sets of a side's factors and biases, and of its row lengths and rating sums if needed. */
function sideSets(problem: AlsProblem, side: Side, rows: readonly number[]): AlsDataSet[] {
  const { params, grid, places } = problem;
  const names = sideNames(side, problem);
  const at = allPlaces(problem, side);
  const { factors: home } = grid[side];
  const partsAt = (place: Place): DataPart[] =>
    rows.map((own, j) => ({ rows: own, at: home === 'device' ? at[j] : [place] }));
  // Numbers of rows stay in host memory.
  const parts = partsAt(HOST);
  const all: DataPart[] = [{ rows: problem.rows[side], at: places }];
  const gathered = grid[side].fixed === 'whole' && names.whole !== names.factors;
  const factors = { side, layout: 'factors', columns: params.rank };
  const bias = { role: 'bias', side, layout: 'bias', columns: 1 } as const;
  const half = isHalfOnly(problem, side)
    ? { half: 'only' as const, ...(isSentInEightBits(problem, side) ? { sentAs: 'i8' as const } : {}) }
    : {};
  const given = (name: string, role: GivenRole, layout: string, extra: number): AlsDataSet => ({
    name,
    role,
    side,
    layout,
    given: true,
    parts: parts.map(({ rows: own, at: [place] }) => ({
      rows: own,
      bytes: 4 * (own + extra),
      at: place === HOST ? [HOST] : [HOST, place],
    })),
  });
  return [
    {
      name: names.factors,
      role: 'factors',
      ...factors,
      parts: home === 'spill' ? partsAt(SPILL) : parts,
    },
    ...(names.bias ? [{ name: names.bias, ...bias, parts }] : []),
    ...(gathered
      ? [{ name: names.whole, role: 'whole' as const, ...factors, derived: true, ...half, parts: all }]
      : []),
    ...(gathered && names.wholeBias ? [{ name: names.wholeBias, ...bias, derived: true, parts: all }] : []),
    ...(hasLengths(grid, side) && !params.implicitPrefs
      ? [given(names.lengths, 'lengths', 'rating-block', 1)]
      : []),
    ...(side === 'items' && hasTotals(problem) ? [given(names.totals, 'totals', 'row-totals', 0)] : []),
  ];
}

/**
 * Data sets of the sums (equations or vectors) for a side that is solved from vertical parts of the other
 * side. Each part of the rows has its sums at the device that owns it. If there are several devices, each
 * device with parts of the fixed side also has partial sums for every part of the rows. They are numbered by
 * part of the rows and device: with d devices, part s on device k is partition s d + k.
 */
function sumSets(problem: AlsProblem, side: Side, rows: readonly number[]): AlsDataSet[] {
  const { rank, biases } = problem.params;
  const names = sideNames(side, problem);
  const how = sumsOf(problem.grid, side);
  const several = problem.places.length > 1;
  const sums: readonly (readonly [AlsDataSet['role'], number, own: string, all: string])[] = [
    ...(how === 'vectors'
      ? []
      : [['equations', equationColumns(rank, biases), names.equations, names.partials] as const]),
    ...(how === 'equations'
      ? []
      : ([
          ['gradients', gradientColumns(rank, biases), names.gradients, names.allGradients],
          ['direction', rank, names.direction, names.allDirections],
          ['products', rank, names.products, names.allProducts],
        ] as const)),
    ...(how !== 'equations' && problem.grid[side].factors === 'spill'
      ? [['solution', rank, names.solution, names.solution] as const]
      : []),
  ];
  const owners = allPlaces(problem, side);
  const at = placesOfFixedParts(problem, side);
  const ofBlocks = blockPlaces(problem, side).map(
    (place, block) => Math.floor(block / verticalParts(problem.grid, side)) * at.length + at.indexOf(place),
  );
  return sums.flatMap(([role, columns, own, all]): AlsDataSet[] => {
    const set = { role, side, layout: 'factors', columns, derived: true };
    const one = { name: own, ...set, parts: rows.map((count, s) => ({ rows: count, at: owners[s] })) };
    if (role === 'solution' || !several) return [one];
    const parts = rows.flatMap((count) => at.map((place): DataPart => ({ rows: count, at: [place] })));
    const collected = { name: all, ...set, by: 'block' as const, ofBlocks, parts };
    // Partial equations are not added up: each device keeps its own and multiplies them by vectors.
    return role === 'equations' && how === 'partial-equations' ? [collected] : [one, collected];
  });
}

/**
 * Data sets for implicit data: a side's Gram matrix G on every device; G of each part, if G must be added up
 * from them; the rows' shifts, which are added to the diagonals of their equations; and for an update the rows'
 * anchors. G has one row for each element of its stride, since solvers read that number of rows.
 */
function implicitSets(problem: AlsProblem, side: Side, rows: readonly number[]): AlsDataSet[] {
  const { params, grid, places, anchored } = problem;
  const names = implicitNames(side);
  const stride = Math.ceil(params.rank / 16) * 16;
  const gram = { role: 'gram', side, layout: 'factors', columns: params.rank, derived: true } as const;
  const ofParts = hasGramOfParts(grid, side, places.length) ? partPlaces(problem, side) : [];
  const at = allPlaces(problem, side);
  const ofRows = (name: string, role: GivenRole, layout: string, bytes: number): AlsDataSet => ({
    name,
    role,
    side,
    layout,
    given: true,
    parts: rows.map((own, j) => ({ rows: own, bytes: bytes * own, at: [HOST, ...at[j]] })),
  });
  return [
    { name: names.gram, ...gram, parts: [{ rows: stride, at: places }] },
    ...(ofParts.length === 0
      ? []
      : [{ name: names.grams, ...gram, parts: ofParts.map((place) => ({ rows: stride, at: [place] })) }]),
    ofRows(names.shifts, 'shifts', 'row-shifts', 4),
    ...(anchored ? [ofRows(names.anchors, 'anchors', 'row-anchors', 1)] : []),
  ];
}

/** Bytes of all blocks of ratings. */
export function ratingBytes({ users, items, ratings, testRatings }: RatingsProfile): number {
  return (
    blockBytes(users, ratings) +
    blockBytes(items, ratings) +
    (testRatings === undefined ? 0 : blockBytes(users, testRatings))
  );
}
