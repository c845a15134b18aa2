import { UsageError } from '../engine/errors.ts';
import {
  call,
  type Cast,
  depthOf,
  type Expression,
  literal,
  type Plain,
} from '../engine/expressions/expression.ts';
import { print } from '../engine/expressions/print.ts';
import type { ValueOf, ValueType } from '../engine/expressions/types.ts';
import { shown } from '../engine/format.ts';

/** A column of true and false. */
type Condition = Column<string, boolean | null>;

/** A column, or a value that is used as a constant. */
export type ColumnOrValue = Column | Plain;

/** @internal */
export const expressionOf = (value: ColumnOrValue): Expression =>
  value instanceof Column ? value.expression : literal(value);

/** @internal A column computed by a function of columns. */
export const made = <Value = unknown>(
  name: string,
  ...args: readonly ColumnOrValue[]
): Column<string, Value> => new Column(call(name, ...args.map(expressionOf)));

/**
 * An expression over the columns of a row, with Spark's names:
 * `col('rating').ge(3.5).and(col('ts').isNotNull())`. Immutable; nothing is computed until a data set uses
 * it. docs/expressions.md has the rules for nulls, NaN and types.
 */
export class Column<Name extends string = string, Value = unknown> {
  /** The tree as plain JSON. */
  readonly expression: Expression;
  /** The name given by `as`. */
  readonly name?: Name;

  constructor(expression: Expression, name?: Name) {
    depthOf(expression); // Throws if it is nested too deep.
    this.expression = expression;
    this.name = name ?? (expression.kind === 'column' ? (expression.name as Name) : undefined);
  }

  /** The column under another name: `col('a').plus(1).as('b')`. */
  as<To extends string>(name: To): Column<To, Value> {
    return new Column<To, Value>(this.expression, name);
  }
  /** Same as `as`. */
  alias<To extends string>(name: To): Column<To, Value> {
    return this.as(name);
  }

  /** Equal: `col('user').eq(7)`. A null on either side gives null. */
  eq(other: ColumnOrValue): Condition {
    return made('=', this, other);
  }
  /** Same as `eq`. */
  equalTo(other: ColumnOrValue): Condition {
    return this.eq(other);
  }
  /** Not equal: `col('user').ne(7)`. */
  ne(other: ColumnOrValue): Condition {
    return made('!=', this, other);
  }
  /** Same as `ne`. */
  notEqual(other: ColumnOrValue): Condition {
    return this.ne(other);
  }
  /** Equal, and null equals null: `col('a').eqNullSafe(null)`. */
  eqNullSafe(other: ColumnOrValue): Condition {
    return made('<=>', this, other);
  }
  /** Less than: `col('rating').lt(3)`. */
  lt(other: ColumnOrValue): Condition {
    return made('<', this, other);
  }
  /** Less than or equal: `col('rating').le(3)`. */
  le(other: ColumnOrValue): Condition {
    return made('<=', this, other);
  }
  /** Same as `le`. */
  leq(other: ColumnOrValue): Condition {
    return this.le(other);
  }
  /** Greater than: `col('rating').gt(3)`. */
  gt(other: ColumnOrValue): Condition {
    return made('>', this, other);
  }
  /** Greater than or equal: `col('rating').ge(3.5)`. */
  ge(other: ColumnOrValue): Condition {
    return made('>=', this, other);
  }
  /** Same as `ge`. */
  geq(other: ColumnOrValue): Condition {
    return this.ge(other);
  }
  /** From `low` to `high`, both included: `col('rating').between(3, 4)`. */
  between(low: ColumnOrValue, high: ColumnOrValue): Condition {
    return this.ge(low).and(this.le(high));
  }
  /** Equal to one of the constants: `col('genre').isIn('Drama', 'Comedy')`. */
  isIn(...values: readonly Plain[]): Condition {
    return made('in', this, ...values);
  }

  /** Both true: `col('a').gt(1).and(col('b').gt(1))`. */
  and(other: ColumnOrValue): Condition {
    return made('and', this, other);
  }
  /** At least one true: `col('a').gt(1).or(col('b').gt(1))`. */
  or(other: ColumnOrValue): Condition {
    return made('or', this, other);
  }
  /** Negation; null stays null: `col('a').isIn(1, 2).not()`. */
  not(): Condition {
    return made('not', this);
  }
  /** True for nulls: `col('ts').isNull()`. */
  isNull(): Condition {
    return made('isNull', this);
  }
  /** False for nulls: `col('ts').isNotNull()`. */
  isNotNull(): Condition {
    return made('isNotNull', this);
  }
  /** True for NaN: `col('rating').isNaN()`. */
  isNaN(): Condition {
    return made('isNaN', this);
  }

  /** Sum: `col('a').plus(1)`. */
  plus(other: ColumnOrValue): Column {
    return made('+', this, other);
  }
  /** Difference: `col('a').minus(1)`. */
  minus(other: ColumnOrValue): Column {
    return made('-', this, other);
  }
  /** Product: `col('rating').times(2)`. */
  times(other: ColumnOrValue): Column {
    return made('*', this, other);
  }
  /** Quotient, float64 also for integers; null if the divisor is 0: `col('count').divide(60)`. */
  divide(other: ColumnOrValue): Column<string, number | null> {
    return made('/', this, other);
  }
  /** Remainder, with the sign of the dividend; null if the divisor is 0: `col('user').mod(10)`. */
  mod(other: ColumnOrValue): Column {
    return made('%', this, other);
  }
  /** The number with the opposite sign: `col('a').negate()`. */
  negate(): Column {
    return made('negate', this);
  }

  /** SQL's pattern, `%` for any text and `_` for any character: `col('title').like('The %')`. */
  like(pattern: string): Condition {
    return made('like', this, pattern);
  }
  /** A regular expression of RE2 that matches anywhere: `col('title').rlike('\\(19\\d\\d\\)')`. */
  rlike(pattern: string): Condition {
    return made('rlike', this, pattern);
  }
  /** `col('title').startsWith('The ')`. */
  startsWith(start: ColumnOrValue): Condition {
    return made('startsWith', this, start);
  }
  /** `col('title').endsWith(')')`. */
  endsWith(end: ColumnOrValue): Condition {
    return made('endsWith', this, end);
  }
  /** `col('genres').contains('Drama')`. */
  contains(part: ColumnOrValue): Condition {
    return made('contains', this, part);
  }

  /**
   * Converts to another type; a value that cannot be converted is an error, or becomes null:
   * `col('rating').cast('float32', 'null')`.
   */
  cast<Type extends ValueType>(to: Type, onError: Cast['onError'] = 'error'): Column<string, ValueOf<Type>> {
    return new Column({ kind: 'cast', value: this.expression, to, onError });
  }

  /** An ascending key for `orderBy`; nulls come first unless `.nullsLast()`: `col('user').asc()`. */
  asc(): SortOrder {
    return new SortOrder(this.expression, false);
  }
  /** A descending key for `orderBy`; nulls come last unless `.nullsFirst()`: `col('rating').desc()`. */
  desc(): SortOrder {
    return new SortOrder(this.expression, true);
  }

  /** The expression in SQL. */
  toString(): string {
    return print(this.expression);
  }
}

/** The column with a name: `col('rating')`. */
export const col = <Name extends string, Value = unknown>(name: Name): Column<Name, Value> =>
  new Column({ kind: 'column', name });
/** A constant: `lit(3.5)`, `lit('Drama')`, `lit(new Date())`, `lit(null)`. */
export const lit = <Value extends Plain>(value: Value): Column<string, Value> => new Column(literal(value));

/** Branches of `when`; without `otherwise`, rows that match no condition are null. */
export class Cases extends Column {
  declare readonly expression: Expression & { kind: 'when' };

  /** A further branch: `when(a, 1).when(b, 2)`. */
  when(condition: Column, value: ColumnOrValue): Cases {
    const branch = { when: conditionOf(condition), value: expressionOf(value) };
    return new Cases({ kind: 'when', branches: [...this.expression.branches, branch] });
  }
  /** The value of all other rows: `when(a, 1).otherwise(0)`. */
  otherwise(value: ColumnOrValue): Column {
    return new Column({ ...this.expression, otherwise: expressionOf(value) });
  }
}

/** A value for rows that match a condition: `when(col('rating').ge(4), 'high').otherwise('low')`. */
export const when = (condition: Column, value: ColumnOrValue): Cases =>
  new Cases({ kind: 'when', branches: [{ when: conditionOf(condition), value: expressionOf(value) }] });

function conditionOf(condition: unknown): Expression {
  if (condition instanceof Column) return condition.expression;
  throw new UsageError(`when takes a condition such as col('rating').ge(4), got ${shown(condition)}`);
}

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
