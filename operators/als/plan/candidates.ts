import { counted } from '../../../engine/format.ts';
import { MAXIMUM_FORMED_RANK } from '../../params/common.ts';
import type { RequestedGrids } from '../als-params.ts';
import { ALL_ROWS } from '../solver-choice.ts';
import { loadedBytes, blockShare, leastBytes } from './memory.ts';
import {
  type AlsGrid,
  otherSide,
  type Side,
  type SideGrid,
  sides,
  hasRequestedParts,
  sumsOf,
  verticalParts,
  type AlsProblem,
} from './problem.ts';

/**
 * Most blocks of ratings in a half-iteration. With more, a block is so small that the cost of a step exceeds
 * its work.
 */
const MOST_BLOCKS = 2 ** 15;

/**
 * Fraction of a device's memory that an estimate may use. The rest allows for parts that are larger than the
 * average.
 */
export const HEADROOM = 0.97;

interface GridLimits {
  readonly requested: RequestedGrids;
  /** Sides of which some device must hold all rows, so that `fixed` cannot be 'parts'. */
  readonly whole?: readonly Side[];
  /** Bytes of host memory. */
  readonly hostBytes: number;
  /** The memory in which ratings may be kept (see SideGrid), fastest first. */
  readonly ratings: readonly SideGrid['ratings'][];
  /** True if parts of factors may be in files. */
  readonly files: boolean;
  /** Most blocks of ratings in a half-iteration. Default: MOST_BLOCKS. */
  readonly mostBlocks?: number | undefined;
}

/** The ways to store a side: see SideGrid. */
const layouts: readonly Pick<SideGrid, 'fixed' | 'factors'>[] = [
  { fixed: 'whole', factors: 'device' },
  { fixed: 'parts', factors: 'device' },
  { fixed: 'parts', factors: 'host' },
  { fixed: 'parts', factors: 'spill' },
];

/**
 * Lists the grids that are possible for a problem: each way to store users and items, with each place for the
 * ratings. Each is cut into the fewest parts that fit into a device by eq. 8 (cuMF, practices of section 4.3:
 * p = 1 if the fixed side fits, then the smallest q). `fits` is false if no number of parts makes the grid
 * small enough. A side that is read in parts has at least two parts.
 */
export function candidateGrids(
  problem: AlsProblem,
  limits: GridLimits,
): { readonly grid: AlsGrid; readonly fits: boolean }[] {
  const { whole = [], ratings, files, hostBytes: host } = limits;
  const drawn = problem.profile.attributes;
  return ratings
    .flatMap((home) => sideLayouts(home, whole, files))
    .filter((both) => drawn === undefined || sides.every((side) => both[side].factors === 'device'))
    .flatMap((layout) => waysToAdd(problem, layout))
    .flatMap((layout) => fittingCut(problem, layout, limits) ?? [])
    .filter(({ grid }) => sides.every((side) => grid[side].fixed === 'whole' || grid[side].q > 1))
    .map(({ grid, fits }) => ({ grid, fits: fits && hostBytes({ ...problem, grid }) <= host }));
}

function hostBytes(problem: AlsProblem): number {
  return Math.max(leastBytes(problem).host, loadedBytes(problem));
}

type Layout = Readonly<Record<Side, Omit<SideGrid, 'q'>>>;

/**
 * All ways to store both sides, with one place for the ratings. A side in `whole` is never read in parts.
 * `files`: true for ways with parts of factors in files, too.
 */
function sideLayouts(home: SideGrid['ratings'], whole: readonly Side[], files: boolean): Layout[] {
  const possible = layouts.filter(({ factors }) => files || factors !== 'spill');
  return possible
    .flatMap((users) => possible.map((items) => ({ users, items })))
    .filter((both) => whole.every((side) => both[side].fixed !== 'parts'))
    .map(({ users, items }) => ({
      users: { ...users, ratings: home },
      items: { ...items, ratings: home },
    }));
}

/**
 * The variants of a layout by the sums that devices exchange for a side that is solved from vertical parts of
 * the other side: normal equations, or vectors of conjugate gradients. Vectors are possible only if all rows
 * are solved by conjugate gradients, not drawn to what attributes predict, and host memory is not the home of factors. A single device exchanges
 * nothing, so it uses partial equations only on request. Above MAXIMUM_FORMED_RANK only vectors are possible.
 */
function waysToAdd(
  {
    solver: { cgBelow },
    compute: { length: devices },
    params: { partitionSums, rank },
    profile: { attributes },
  }: AlsProblem,
  layout: Layout,
): Layout[] {
  const parted = sides.filter((side) => layout[otherSide[side]].fixed === 'parts');
  const formed = rank <= MAXIMUM_FORMED_RANK;
  const wholeRows = cgBelow < ALL_ROWS || attributes !== undefined;
  if (wholeRows || sides.some((side) => layout[side].factors === 'host'))
    return formed || parted.length === 0 ? [layout] : [];
  const asked = devices > 1 || partitionSums === 'partial-equations';
  const vectorSums: readonly Pick<SideGrid, 'sums' | 'common'>[] = [
    { sums: 'vectors' },
    ...(formed && asked ? [{ sums: 'partial-equations' } as const] : []),
    // With more than two devices, each would receive the sums of all others.
    ...(formed && devices === 2 ? [{ sums: 'partial-equations', common: 1 } as const] : []),
  ];
  return parted.reduce(
    (ways, side) =>
      ways.flatMap((way) => [
        ...(formed ? [way] : []),
        ...vectorSums.map((sums): Layout => ({ ...way, [side]: { ...way[side], ...sums } })),
      ]),
    [layout],
  );
}

/** The fastest way to a cut that fits; if it ends at too many blocks, the way with the fewest blocks. */
function fittingCut(problem: AlsProblem, layout: Layout, limits: GridLimits): ReturnType<typeof smallestCut> {
  const needs = new Map<string, number>();
  // Both ways begin with the same cuts.
  const need = (grid: AlsGrid) => {
    const key = `${grid.users.q} ${grid.items.q}`;
    const known = needs.get(key) ?? needOf(problem, grid);
    needs.set(key, known);
    return known;
  };
  const cut = smallestCut(problem, layout, limits, need);
  if (cut === undefined || cut.fits) return cut;
  const other = smallestCut(problem, layout, limits, need, true);
  return other?.fits ? other : cut;
}

/**
 * `needOfCut`: see needOf. `frugal`: the memory that a cut saves is weighed against the number of blocks that
 * it adds.
 */
function smallestCut(
  problem: AlsProblem,
  layout: Layout,
  { requested, mostBlocks = MOST_BLOCKS }: GridLimits,
  needOfCut: (grid: AlsGrid) => number,
  frugal?: boolean,
): { readonly grid: AlsGrid; readonly fits: boolean } | undefined {
  const fixedCut = (side: Side) =>
    requested[side]?.q ??
    (requested[otherSide[side]] && (requested[otherSide[side]]?.p ?? 1) > 1
      ? requested[otherSide[side]]?.p
      : undefined);
  const begin = (side: Side) =>
    layout[side].common === 1 ? 1 : (fixedCut(side) ?? Math.min(problem.compute.length, problem.rows[side]));
  let grid: AlsGrid = {
    users: { ...layout.users, q: begin('users') },
    items: { ...layout.items, q: begin('items') },
  };
  // Other numbers of parts, or other sums, than the caller requested are no candidates.
  if (!hasRequestedParts(grid, requested)) return undefined;
  for (let need = needOfCut(grid); ;) {
    if (need <= 1) return { grid, fits: true };
    const finer = (side: Side): SideGrid => ({
      ...grid[side],
      q: grid[side].common === 1 ? 1 : (fixedCut(side) ?? Math.min(problem.rows[side], 2 * grid[side].q)),
    });
    const weightOf = (one: { readonly cut: AlsGrid; readonly need: number }) =>
      frugal ? one.need * Math.sqrt(one.cut.users.q * one.cut.items.q) : one.need;
    // Doubles the parts of users, of items, or of both, whichever needs the least memory. If they need the
    // same, the first is taken, which cuts only one side.
    const next = [
      { ...grid, users: finer('users') },
      { ...grid, items: finer('items') },
      { users: finer('users'), items: finer('items') },
    ]
      .flatMap((cut: AlsGrid) => {
        const beyond = sides.some((one) => cut[one].q * verticalParts(cut, one) > mostBlocks);
        return beyond ? [] : [{ cut, need: needOfCut(cut) }];
      })
      .sort((left, right) => weightOf(left) - weightOf(right))[0];
    if (next === undefined || next.need >= need * 0.999) return { grid, fits: false };
    [grid, need] = [next.cut, next.need];
  }
}

/** The memory that a grid needs, as a fraction of the memory of the smallest device. */
function needOf(problem: AlsProblem, grid: AlsGrid): number {
  const capacity = Math.min(...problem.compute.map(({ capacityBytes }) => capacityBytes ?? Infinity));
  const { bindingBytes = Infinity } = problem.device;
  const { device, buffer } = leastBytes({ ...problem, grid });
  return Math.max(device / (HEADROOM * capacity), buffer / bindingBytes, blockShare({ ...problem, grid }));
}

const exchanges = {
  vectors: 'matrix-free CG that exchanges vectors',
  'partial-equations': 'CG on partial equations that exchanges vectors',
};

/**
 * Describes a grid for a printed plan, such as "X in 10 parts at the host; Θ whole, solved in 1 part; ratings
 * staged from the host".
 */
export function describeGrid({ users, items }: AlsGrid): string {
  const exchanged = (['vectors', 'partial-equations'] as const).flatMap((sums) => {
    const solved = sides.filter((side) => sumsOf({ users, items }, side) === sums);
    return solved.length === 0 ? [] : `; ${solved.join(' and ')} by ${exchanges[sums]}`;
  });
  const side = (name: string, { q, fixed, factors, common }: SideGrid) =>
    `${name} ${fixed === 'whole' ? `whole, solved in ${counted(q, 'part')}` : `in ${counted(q, 'part')}`}${{ device: '', host: ' at the host', spill: ' in files' }[factors]}${common === undefined ? '' : ` with ${Math.round(100 * common)} % on every device`}`;
  const ratings = {
    device: 'ratings resident',
    host: 'ratings staged from the host',
    spill: 'ratings staged from files',
  }[users.ratings];
  return `${side('X', users)}; ${side('Θ', items)}; ${ratings}${exchanged.join('')}`;
}
