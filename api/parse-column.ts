import { parseExpression } from '../connectors/expressions/parse-expression.ts';
import { Column } from './expressions.ts';

/** An expression from SQL, as in `--where` and `--with`. Throws UsageError naming the error. */
export function parseColumn(text: string): Column {
  return new Column(parseExpression(text));
}

/** An expression from SQL, as in `--where`: `expr('a > 1 and b is null')`, `expr("s like 'x%'").as('x')`. */
export const expr = parseColumn;
