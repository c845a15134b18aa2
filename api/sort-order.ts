import type { Expression } from '../engine/expressions/expression.ts';

/** A key of `orderBy`, from `col('rating').desc()` or `.asc()`. Immutable. */
export class SortOrder {
  readonly expression: Expression;
  readonly descending: boolean;
  /** Default: first when ascending, last when descending, as in Spark. */
  readonly nulls: 'first' | 'last' | undefined;

  constructor(expression: Expression, descending: boolean, nulls?: 'first' | 'last') {
    [this.expression, this.descending, this.nulls] = [expression, descending, nulls];
  }

  /** Nulls before all values: `col('rating').desc().nullsFirst()`. */
  nullsFirst(): SortOrder {
    return new SortOrder(this.expression, this.descending, 'first');
  }

  /** Nulls after all values: `col('rating').asc().nullsLast()`. */
  nullsLast(): SortOrder {
    return new SortOrder(this.expression, this.descending, 'last');
  }
}
