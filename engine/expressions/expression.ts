import { UsageError } from '../errors.ts';
import { shown } from '../format.ts';
import type { ValueType } from './types.ts';

/**
 * A column expression as plain JSON: printed in plans, sent to workers, and the result of parsing text.
 *
 * `call` names a function or operator of functions/table.ts, such as `>=`, `and`, `lower`.
 */
export type Expression = ColumnName | Literal | Call | Cast | When;

export interface ColumnName {
  readonly kind: 'column';
  readonly name: string;
}

/**
 * A constant. int64 and uint64 are decimal text, so that JSON keeps all digits; dates and timestamps are ISO
 * text (UTC); floats that JSON lacks are 'NaN', 'Infinity' and '-Infinity'.
 */
export interface Literal {
  readonly kind: 'literal';
  readonly type: ValueType;
  readonly value: string | number | boolean | null;
}

export interface Call {
  readonly kind: 'call';
  readonly name: string;
  readonly args: readonly Expression[];
}

/** `onError`: a value that cannot be converted is an error, or becomes null. */
export interface Cast {
  readonly kind: 'cast';
  readonly value: Expression;
  readonly to: ValueType;
  readonly onError: 'error' | 'null';
}

/** The value of the first branch whose condition is true; else `otherwise`, by default null. */
export interface When {
  readonly kind: 'when';
  readonly branches: readonly { readonly when: Expression; readonly value: Expression }[];
  readonly otherwise?: Expression;
}

/**
 * A condition that every selected row meets: `column operator values[0]`; any of the values for `in`; no
 * value for isNull and isNotNull. NaN is above all numbers, so statistics that ignore NaN do not decide `>`,
 * `>=` and `!=`.
 */
export interface Bound {
  readonly column: string;
  readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | '<=>' | 'in' | 'isNull' | 'isNotNull';
  /** Literals of the type used for the comparison. */
  readonly values: readonly Literal[];
}

/** A JavaScript value; whole numbers become int64. */
export type Plain = string | number | bigint | boolean | Date | null;

export function literal(value: Plain): Literal {
  if (value === null) return { kind: 'literal', type: 'null', value };
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw new UsageError('a Date in an expression has no valid time');
  if (value instanceof Date) return { kind: 'literal', type: 'timestamp', value: value.toISOString() };
  switch (typeof value) {
    case 'string':
      return { kind: 'literal', type: 'utf8', value };
    case 'boolean':
      return { kind: 'literal', type: 'bool', value };
    case 'bigint':
      return { kind: 'literal', type: value < 2n ** 63n ? 'int64' : 'uint64', value: `${value}` };
    case 'number':
      if (Number.isSafeInteger(value)) return { kind: 'literal', type: 'int64', value: `${value}` };
      return { kind: 'literal', type: 'float64', value: Number.isFinite(value) ? value : `${value}` };
    default:
      throw new UsageError(`an expression takes numbers, texts, truths, dates and null, got ${shown(value)}`);
  }
}

/** Operators whose terms may be grouped in any way, so that a long chain of them is kept as a balanced tree. */
const associative: readonly string[] = ['and', 'or'];

/** A call; throws UsageError if it is nested too deep (`depthOf`). */
export function call(name: string, ...args: readonly Expression[]): Call {
  if (associative.includes(name) && args.length === 2) return chained(name, args[0], args[1]);
  return new MadeCall(name, args);
}

/** A call that knows its depth, so that a long chain is not descended again for each term that is added. */
class MadeCall implements Call {
  readonly kind = 'call';
  readonly name: string;
  readonly args: readonly Expression[];
  readonly #depth: number;

  constructor(name: string, args: readonly Expression[]) {
    [this.name, this.args] = [name, args];
    this.#depth = 1 + deepestOf(args, MOST_LEVELS - 1);
  }

  static depthOf(expression: Expression): number | undefined {
    return #depth in expression ? expression.#depth : undefined;
  }
}

/**
 * Joins two chains of an associative operator and keeps the order of their terms. As in an AVL tree, the
 * deeper chain is opened at its near end, so that n terms have a depth of O(log n), whichever way they are
 * added. `make` joins what results, in which one side may be two levels deeper: it is opened once more.
 */
function chained(name: string, left: Expression, right: Expression, make = rotated): Call {
  const difference = depthOf(left) - depthOf(right);
  if (difference > 1 && isCallOf(left, name)) {
    const [first, second] = left.args;
    return make(name, first, chained(name, second, right));
  }
  if (difference < -1 && isCallOf(right, name)) {
    const [first, second] = right.args;
    return make(name, chained(name, left, first), second);
  }
  return new MadeCall(name, [left, right]);
}

function rotated(name: string, left: Expression, right: Expression): Call {
  return chained(name, left, right, (_, first, second) => new MadeCall(name, [first, second]));
}

function isCallOf(expression: Expression, name: string): expression is Call {
  return expression.kind === 'call' && expression.name === name && expression.args.length === 2;
}

/** Most levels of an expression: planning and evaluation descend by recursion. */
export const MOST_LEVELS = 500;

export function tooDeep(): UsageError {
  return new UsageError(`an expression is nested more than ${MOST_LEVELS} levels deep`, {
    advice: 'Compute a part of it as a column first, or group the terms of a long sum: (a + b) + (c + d)',
  });
}

/** The levels of an expression: 1 of a column; throws UsageError if they are more than `most`. */
export function depthOf(expression: Expression, most = MOST_LEVELS): number {
  if (most === 0) throw tooDeep();
  const depth = MadeCall.depthOf(expression) ?? 1 + deepestOf(partsOf(expression), most - 1);
  if (depth > most) throw tooDeep();
  return depth;
}

function deepestOf(parts: readonly Expression[], most: number): number {
  let deepest = 0;
  for (const part of parts) deepest = Math.max(deepest, depthOf(part, most));
  return deepest;
}

/** The parts of an expression, one level down. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'call':
      return expression.args;
    case 'cast':
      return [expression.value];
    case 'when': {
      const { branches, otherwise } = expression;
      return [...branches.flatMap(({ when, value }) => [when, value]), ...(otherwise ? [otherwise] : [])];
    }
    default:
      return [];
  }
}

/** The expression with other expressions in place of its columns. */
export function withColumns(expression: Expression, of: (column: ColumnName) => Expression): Expression {
  const inside = (part: Expression) => withColumns(part, of);
  switch (expression.kind) {
    case 'column':
      return of(expression);
    case 'call':
      return { ...expression, args: expression.args.map(inside) };
    case 'cast':
      return { ...expression, value: inside(expression.value) };
    case 'when':
      return {
        ...expression,
        branches: expression.branches.map(({ when, value }) => ({
          when: inside(when),
          value: inside(value),
        })),
        ...(expression.otherwise && { otherwise: inside(expression.otherwise) }),
      };
    default:
      return expression;
  }
}

/** The columns that an expression reads, each once. */
export function columnsOf(expression: Expression): string[] {
  if (expression.kind === 'column') return [expression.name];
  return [...new Set(partsOf(expression).flatMap(columnsOf))];
}
