import { Schema } from 'apache-arrow';
import { Wide } from '../../exchange/wide.ts';
import type { Rule } from './chain.ts';

/** Removes aggregates of a grouping that neither later operators nor the consumer need. */
export const pruneAggregates: Rule = (chain) => {
  const { source, operators, wanted } = chain;
  if (!(source instanceof Wide)) return chain;
  const needed = operators.reduceRight<readonly string[] | undefined>(
    (names, operator) => operator.requiredColumns(names),
    wanted,
  );
  const kept = needed && source.operator.keeping?.(needed);
  if (kept === undefined) return chain;
  const { operator, columns } = kept;
  const fields = chain.schema.fields.filter(({ name }) => columns.includes(name));
  return { ...chain, source: new Wide(operator, source.inputs), schema: new Schema(fields) };
};
