import { Aggregate } from '../dataflow/aggregate/aggregate.ts';
import { MOST_MERGED } from '../dataflow/aggregate/fewer-rows.ts';
import { DistinctRows } from '../dataflow/distinct-rows.ts';
import { DropNulls } from '../dataflow/drop-nulls.ts';
import { Filter } from '../dataflow/filter.ts';
import { Project } from '../dataflow/project.ts';
import { Sample } from '../dataflow/sample.ts';
import type { RowsWork } from '../pipeline/rows-work.ts';
import type { ChainOperator } from '../pipeline/run-chain.ts';

/**
 * The largest number of rows that a task can return, if its last operator merges rows with equal keys (a
 * group or `distinct`): the number of combinations of the keys' values, if it is known and so small that the
 * operator always merges. Otherwise Infinity.
 */
export function mostGroups({ operators, taken, schema }: RowsWork): number {
  const merged = mergedBy(operators.at(-1));
  const keys = merged === 'all' ? schema.fields.map(({ name }) => name) : merged;
  if (keys === undefined || taken.kind !== 'splits') return Number.POSITIVE_INFINITY;
  const counts = keys.map((key) => {
    const name = operators.slice(0, -1).reduceRight<string | undefined>(nameBefore, key);
    return (name !== undefined && taken.mostValues?.[name]) || Number.POSITIVE_INFINITY;
  });
  const most = counts.reduce((product, count) => product * count, 1);
  return most <= MOST_MERGED ? most : Number.POSITIVE_INFINITY;
}

function mergedBy(operator: ChainOperator | undefined): readonly string[] | 'all' | undefined {
  return operator instanceof Aggregate || operator instanceof DistinctRows ? operator.mergedBy : undefined;
}

/** Name of a column before an operator that keeps it unchanged; undefined if the operator may change it. */
function nameBefore(name: string | undefined, operator: ChainOperator): string | undefined {
  if (name === undefined) return undefined;
  if (operator instanceof Project) {
    const { projection } = operator;
    if (projection.kind === 'drop') return name;
    if (projection.kind === 'rename') return name === projection.to ? projection.from : name;
    const made = projection.columns.find((column) => column.name === name);
    if (made === undefined) return name;
    return made.value.kind === 'column' ? made.value.name : undefined;
  }
  const keeps = [Filter, DropNulls, Sample].some((kind) => operator instanceof kind);
  return keeps ? name : undefined;
}
