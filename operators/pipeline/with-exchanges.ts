import {
  andThen,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
} from '../../engine/stream/logical-plan.ts';
import { SortRows } from '../dataflow/sort/sort-rows.ts';
import { OrderRows } from '../exchange/order-rows.ts';
import { Wide } from '../exchange/wide.ts';

/**
 * Replaces each sort in a plan by an exchange of rows by ranges of the sort keys, so that tasks sort parts of
 * the rows. Groupings and joins are exchanges already.
 */
export function withExchanges(plan: LogicalPlan): LogicalPlan {
  return operatorsOf(plan).reduce(
    (input, operator) =>
      operator instanceof SortRows
        ? fromSource(new Wide(new OrderRows(operator.keys), [input]))
        : andThen(input, operator),
    fromSource(rootSource(plan)),
  );
}
