import type { Schema } from 'apache-arrow';
import { type Expression, partsOf } from '../../../engine/expressions/expression.ts';
import type { Operator, Source } from '../../../engine/stream/operator.ts';
import type { NamedExpression } from '../project.ts';

/** A plan as a list: the source, then the operators in order. */
export interface Chain {
  readonly source: Source;
  /** Schema of the source. */
  readonly schema: Schema;
  readonly operators: readonly Operator[];
  /** Columns of the result that the consumer needs; default: all. */
  readonly wanted?: readonly string[];
}

/** A pure function. Returns a cheaper chain with the same rows, or the chain itself. */
export type Rule = (chain: Chain) => Chain;

/** Rewrites an expression over a projection's result as an expression over its input. */
export function substitute(expression: Expression, columns: readonly NamedExpression[]): Expression {
  const inside = (part: Expression) => substitute(part, columns);
  switch (expression.kind) {
    case 'column':
      return columns.find(({ name }) => name === expression.name)?.value ?? expression;
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

/** The number of times that an expression reads each column. */
export function uses(expression: Expression, counts = new Map<string, number>()): Map<string, number> {
  if (expression.kind === 'column') counts.set(expression.name, (counts.get(expression.name) ?? 0) + 1);
  else for (const part of partsOf(expression)) uses(part, counts);
  return counts;
}
