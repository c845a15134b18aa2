import type { SortKey } from '../../../engine/sorting/sort-keys.ts';
import { andThen, type LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import { SortRows } from './sort-rows.ts';

/** The plan of the rows of another in the order of keys: how they are sorted is decided here alone. */
export function sortedRows(plan: LogicalPlan, keys: readonly SortKey[]): LogicalPlan {
  return andThen(plan, new SortRows(keys));
}
