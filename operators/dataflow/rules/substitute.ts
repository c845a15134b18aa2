import { type Expression, partsOf } from '../../../engine/expressions/expression.ts';
import type { NamedExpression } from '../project.ts';

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
