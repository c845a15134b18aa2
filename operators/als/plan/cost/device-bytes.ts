import { partBytes } from '../../../../engine/plan/bound-plan.ts';
import { type Place, SPILL } from '../../../../engine/plan/place.ts';
import { type AlsDataSet, alsDataSets, estimatedSizes } from '../data-sets.ts';
import { isInBlocks, otherSide, type Side, type SideGrid, verticalParts } from '../grid.ts';
import { copiedRows } from '../host-memory.ts';
import { type AlsProblem, stepsTogether } from '../problem.ts';
import { blockLimit } from '../../../planner/sizes.ts';

/**
 * The roles of data sets that leastBytes counts as large matrices. For sums the value is the number of
 * versions of a part that exist at the same time.
 */
const matrices: Partial<Readonly<Record<AlsDataSet['role'], 'factors' | 'whole' | number>>> = {
  factors: 'factors',
  whole: 'whole',
  equations: 1,
  gradients: 1,
  direction: 2,
  products: 1,
  solution: 1,
};

/**
 * The largest part has at most this number of times the average number of ratings: parts are cut to have
 * about the same sum of ratings and rows, so their ratings differ a little.
 */
const UNEQUAL = 1.05;

/**
 * Estimates the memory that a grid needs from its large data sets (eq. 8 of cuMF): bytes on a device, bytes
 * on the host, and bytes of the largest buffer. The planner uses it to select the grids to try. Whether a
 * grid really fits is decided later by expanding the plan's steps, which shows when each part is in memory.
 *
 * Parts of a side that are counted on a device:
 *
 *   data                                      parts
 *   factors that stay on the device           all of this device, and one part in a second version
 *   factors that are copied for each use      2 in use, 2 that are copied back
 *   ratings that are copied for each use      2
 *   equations, gradients, products            1; with stepsTogether one of each device
 *   directions of conjugate gradients         the same, in two versions
 */
export function leastBytes(problem: AlsProblem): Record<'device' | 'host' | 'buffer', number> {
  const { grid, device, params, places, rows } = problem;
  const least = { device: 0, host: (device.ownMemory ? 2 : 1) * 4 * params.rank * copiedRows(problem) };
  const passing = { users: 0, items: 0 };
  const buffers: number[] = [];
  // If there are many equal parts, the sizes of a few are computed and multiplied by `times`.
  const shown = { users: shownOf(problem, 'users'), items: shownOf(problem, 'items') };
  for (const set of alsDataSets({ ...problem, grid: shown }, estimatedSizes(problem, shown))) {
    const { role, side, parts, by } = set;
    const [{ rows: own, bytes: ofRatings = 0, at: home }] = parts;
    const bytes = partBytes({ devices: [device] }, set, 0, device.place);
    const columns = by === 'block' ? verticalParts(grid, side) / verticalParts(shown, side) : 1;
    const times = (columns * grid[side].q) / shown[side].q;
    const here = times * parts.filter(({ at }) => at.includes(device.place)).length;
    if (role === 'ratings') {
      if (home[0] !== SPILL) least.host += times * parts.length * ofRatings;
      // A device that shares the host's memory reads ratings in place.
      const each = device.ownMemory ? ofRatings : 0;
      least.device += here * each;
      if (here === 0) passing[side] += 2 * each;
      buffers.push((ofRatings - 4 * (own + 1)) / 2);
      continue;
    }
    const kind = matrices[role];
    if (kind === undefined) continue;
    buffers.push(bytes);
    if (kind === 'whole') least.device += bytes;
    else if (kind !== 'factors')
      passing[side] += kind * bytes * (stepsTogether(problem, side) ? places.length : 1);
    else if (here > 0) least.device += (here + 1) * bytes;
    else {
      least.host += 4 * params.rank * rowsAtHost(home[0], rows[side], own);
      passing[side] += 4 * bytes;
      if (isInBlocks(grid, otherSide[side])) passing[otherSide[side]] += 2 * bytes;
    }
  }
  least.device += Math.max(passing.users, passing.items);
  return { ...least, buffer: UNEQUAL * Math.max(...buffers) };
}

/** Rows in host memory. Of a side in files, only the parts that are being read and written are there. */
function rowsAtHost(home: Place, rows: number, ofPart: number): number {
  return home === SPILL ? 4 * ofPart : rows + ofPart;
}

function shownOf({ grid, places }: AlsProblem, side: Side): SideGrid {
  return { ...grid[side], q: Math.min(grid[side].q, 2 * places.length) };
}

/**
 * The number of ratings in a grid's largest block, as a fraction of the most that a block can hold (0 if one
 * block holds all ratings). The ratings by user are sorted as whole rows first and cut into blocks later, so
 * for users a part counts as one block.
 */
export function blockShare({
  profile: { ratings: nz },
  grid,
}: Pick<AlsProblem, 'grid'> & { readonly profile: Pick<AlsProblem['profile'], 'ratings'> }): number {
  const blocks = Math.min(grid.users.q, grid.items.q * verticalParts(grid, 'items'));
  return nz <= blockLimit.ratings ? 0 : (UNEQUAL * nz) / blocks / blockLimit.ratings;
}
