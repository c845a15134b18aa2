import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import { parseExpression } from '../connectors/expressions/parse-expression.ts';
import { Column } from './expressions.ts';

/**
 * A column from SQL, as `--where` and `--with` take it: `expr('a > 1 and b is null')`. Throws UsageError naming
 * the error.
 */
export function expr(text: string): Column {
  if (typeof text !== 'string')
    throw new UsageError(`expr takes a text, got ${shown(text)}`, { advice: "Write expr('rating >= 4')" });
  return new Column(parseExpression(text));
}
