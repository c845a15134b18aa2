import type { DataUses, RowRange } from '../../../engine/plan/stages.ts';
import { evenRanges, rangesOfSize } from '../../ratings/row-ranges.ts';
import type { Side } from '../plan/problem.ts';

/** Number of rows of a Gram matrix that one task computes, on a device whose passes are cut into tasks. */
const GRAM_ROWS = 16;

/**
 * Names of a side's data sets for implicit data: its Gram matrix, the Gram matrices of its parts, the numbers
 * that are added to the diagonals of its rows' equations (shifts), and for an update the rows' anchors.
 */
export function implicitNames(side: Side) {
  return {
    gram: `${side}-gram`,
    grams: `${side}-grams`,
    shifts: `${side}-shifts`,
    anchors: `${side}-anchors`,
  } as const;
}

/** Names of the stages that measure the implicit loss. */
export const implicitStages = {
  error: 'implicit-error',
  users: 'penalty-users',
  items: 'penalty-items',
  grams: 'fetch-grams',
  ranks: 'rank-validation',
  places: 'fetch-places',
} as const;

/** Data set with the rank of each validation pair among all items for its user. */
export const TEST_PLACES = 'test-places';

/** Number of users whose pairs one task ranks, on a device whose passes are cut into tasks. */
const RANKED_USERS = 2048;

/** The user ranges of the tasks that rank the pairs of a part. `whole`: one task for all. */
export function rankSlices(users: number, whole: boolean): RowRange[] {
  return users === 0 ? [{ from: 0, to: 0 }] : evenRanges(users, whole ? 1 : Math.ceil(users / RANKED_USERS));
}

/** The row ranges of the tasks that compute a Gram matrix. `whole`: one task for all rows. */
export function gramSlices(rank: number, whole: boolean): RowRange[] {
  return rangesOfSize(rank, whole ? rank : GRAM_ROWS);
}

/**
 * Task inputs that only implicit data have: the Gram matrix of the fixed side, and the shifts of the solved
 * rows.
 */
export function implicitUses(solved: Side, fixed: Side): DataUses {
  return { gram: implicitNames(fixed).gram, shifts: implicitNames(solved).shifts };
}
