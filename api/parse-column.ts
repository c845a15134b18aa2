import { parseExpression } from '../connectors/expressions/parse-expression.ts';
import { Column } from './expressions.ts';

/**
 * An expression that is written in SQL, as `--where` and `--with` take it. Throws UsageError naming what is
 * wrong.
 */
export function parseColumn(text: string): Column {
  return new Column(parseExpression(text));
}
