import { Schema } from 'apache-arrow';
import { check, isLiteral } from '../../../engine/expressions/check.ts';
import { columnsOf, depthOf, type Expression, MOST_LEVELS } from '../../../engine/expressions/expression.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { LEFT_OUT } from '../../../engine/stream/stream.ts';
import { Wide } from '../../exchange/wide-operators.ts';
import { Filter } from '../filter.ts';
import { type NamedExpression, Project, type Projection, selectColumns } from '../project.ts';
import { Sample } from '../sample.ts';
import { type Rule, substitute, uses } from './rule.ts';

/**
 * Writes each projection as a full list of columns, for which it needs the source's schema. A filter that
 * also drops columns (in a plan that was optimized before) becomes a filter and a projection. The other rules
 * handle only these forms.
 */
export const resolveColumns: Rule = (chain) => {
  let { schema } = chain;
  const operators = joinedAdditions(chain.operators).flatMap((operator) => {
    const resolved = resolvedOf(operator, schema);
    schema = operator.outputSchema(schema);
    return resolved;
  });
  return { ...chain, operators };
};

/**
 * Joins adjacent projections that add columns, as long as none reads a column of an earlier one. A list of all
 * columns for each of thousands of `withColumn` would take quadratic time.
 */
function joinedAdditions(operators: readonly Operator[]): Operator[] {
  const joined: Operator[] = [];
  const added = new Map<string, NamedExpression>();
  const endAdditions = () => {
    if (added.size > 0) joined.push(new Project({ kind: 'with', columns: [...added.values()] }));
    added.clear();
  };
  for (const operator of operators) {
    const projection = operator instanceof Project ? operator.projection : undefined;
    if (projection?.kind !== 'with') {
      endAdditions();
      joined.push(operator);
      continue;
    }
    const { columns } = projection;
    const isFree = columns.every(({ value }) => columnsOf(value).every((name) => !added.has(name)));
    if (!isFree) endAdditions();
    for (const column of columns) added.set(column.name, column);
  }
  endAdditions();
  return joined;
}

function resolvedOf(operator: Operator, schema: Schema): Operator[] {
  if (operator instanceof Project && operator.projection.kind !== 'select')
    return [new Project({ kind: 'select', columns: operator.columns(schema) })];
  if (!(operator instanceof Filter) || operator.keeps === undefined) return [operator];
  const names = operator.outputSchema(schema).fields.map(({ name }) => name);
  return [new Filter(operator.predicate), selectColumns(names)];
}

const noColumns = new Schema([]);

/** Merges two adjacent projections, if no expression would be computed more than once or be nested too deep. */
export const mergeProjections: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    const merged = mergedInto(operators.at(-1), operator);
    if (merged === undefined) operators.push(operator);
    else operators[operators.length - 1] = merged;
  }
  return { ...chain, operators };
};

function mergedInto(below: Operator | undefined, above: Operator): Project | undefined {
  const [inner, outer] = [selectOf(below), selectOf(above)];
  if (inner === undefined || outer === undefined) return undefined;
  const counts = new Map<string, number>();
  for (const { value } of outer.columns) uses(value, counts);
  const isTwice = inner.columns.some(
    ({ name, value }) => value.kind !== 'column' && value.kind !== 'literal' && (counts.get(name) ?? 0) > 1,
  );
  if (isTwice || levelsOf(inner) + levelsOf(outer) > MOST_LEVELS) return undefined;
  const typed = inner.columns.map(({ name, value }) => ({ name, value: typedLiteral(value) }));
  const columns = outer.columns.map(({ name, value }) => ({
    name,
    value: substitute(value, value.kind === 'column' ? inner.columns : typed),
  }));
  return new Project({ kind: 'select', columns });
}

/** The levels of the deepest column. */
function levelsOf({ columns }: Projection & { kind: 'select' }): number {
  return columns.reduce((most, { value }) => Math.max(most, depthOf(value)), 0);
}

/** Gives a literal its column type explicitly: inside an expression it would adopt another type. */
function typedLiteral(value: Expression): Expression {
  if (!isLiteral(value)) return value;
  const { type } = check(value, noColumns);
  return type === 'null' ? value : { kind: 'cast', value, to: type, onError: 'error' };
}

function selectOf(operator: Operator | undefined): (Projection & { kind: 'select' }) | undefined {
  const projection = operator instanceof Project ? operator.projection : undefined;
  return projection?.kind === 'select' ? projection : undefined;
}

/** Removes columns from projections and filters that neither later operators nor the consumer need. */
export const pruneColumns: Rule = (chain) => {
  let { wanted } = chain;
  const operators: Operator[] = [];
  for (const operator of chain.operators.toReversed()) {
    const needed = pruned(operator, wanted);
    operators.unshift(needed);
    wanted = needed.requiredColumns(wanted);
  }
  return { ...chain, operators };
};

function pruned(operator: Operator, wanted: readonly string[] | undefined): Operator {
  if (wanted === undefined) return operator;
  if (operator instanceof Filter) {
    const isRead = columnsOf(operator.predicate).every((name) => wanted.includes(name));
    return isRead ? operator : new Filter(operator.predicate, wanted);
  }
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return operator;
  const { columns: all } = operator.projection;
  const columns = all.filter(({ name }) => wanted.includes(name));
  // If a count needs no column, the first one is computed anyway, so that an error in its expression is still
  // reported.
  const counted =
    columns.length > 0 ? columns : all.slice(0, 1).filter(({ value }) => value.kind !== 'column');
  return new Project({ kind: 'select', columns: counted });
}

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

/**
 * Removes operators without effect: projections to all columns in order, filters that are always true,
 * samples of all rows. Where the source leaves out columns, a projection to all others has an effect: a read
 * of all columns is an error.
 */
export const dropIdle: Rule = (chain) => {
  let { schema } = chain;
  const operators = chain.operators.filter((operator) => {
    if (isIdle(operator, schema)) return false;
    schema = operator.outputSchema(schema);
    return true;
  });
  return { ...chain, operators };
};

function isIdle(operator: Operator, { fields, metadata }: Schema): boolean {
  if (operator instanceof Sample) return operator.fraction >= 1;
  if (operator instanceof Filter)
    return operator.predicate.kind === 'literal' && operator.predicate.value === true;
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return false;
  if (metadata.has(LEFT_OUT)) return false;
  const { columns } = operator.projection;
  return (
    columns.length === fields.length &&
    columns.every(
      ({ name, value }, i) => value.kind === 'column' && value.name === name && fields[i].name === name,
    )
  );
}
