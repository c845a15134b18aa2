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

/** The same plan, with exchanges in place of operators that need all rows. */
export function withExchanges(plan: LogicalPlan): LogicalPlan {
  return operatorsOf(plan).reduce(
    (input, operator) =>
      operator instanceof SortRows
        ? fromSource(new Wide(new OrderRows(operator.keys), [input]))
        : andThen(input, operator),
    fromSource(rootSource(plan)),
  );
}
