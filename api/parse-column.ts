import { parseExpression } from '../connectors/expressions/parse-expression.ts';
import { Column } from './expressions.ts';

/**
 * A column from SQL, as `--where` and `--with` take it: `expr('a > 1 and b is null')`. Throws UsageError naming
 * the error.
 */
export function expr(text: string): Column {
  return new Column(parseExpression(text));
}
