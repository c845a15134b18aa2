import type { RowGroupInfo } from './footer.ts';

/** A range of one column's values, both ends included. */
export interface RowGroupFilter {
  readonly column: string;
  readonly min?: number | bigint;
  readonly max?: number | bigint;
}

/**
 * False only when the group's statistics prove that no row lies in the range; a group without statistics may
 * match.
 */
export function mayMatch(group: RowGroupInfo, filter: RowGroupFilter | undefined): boolean {
  if (filter === undefined) return true;
  const statistics = group.columns.find(({ column }) => column === filter.column)?.statistics;
  if (statistics === undefined) return true;
  const { min, max } = statistics;
  if (filter.min !== undefined && max !== undefined && max < filter.min) return false;
  return !(filter.max !== undefined && min !== undefined && min > filter.max);
}
