import { Schema, DataType } from 'apache-arrow';
import { boundsOf, check, checkPredicate, fieldOfStruct, isLiteral } from '../../engine/expressions/check.ts';
import {
  columnsOf,
  depthOf,
  type Expression,
  MOST_LEVELS,
  call,
  partsOf,
  withColumns,
} from '../../engine/expressions/expression.ts';
import {
  andThen,
  fromSource,
  type LogicalPlan,
  operatorsOf,
  rootSource,
  schemaOf,
  sourceRequest,
  knownSchema,
} from '../../engine/stream/logical-plan.ts';
import type { ValueNeeds, Operator, Source, Side } from '../../engine/stream/operator.ts';
import { LEFT_OUT } from '../../engine/stream/stream.ts';
import { Wide, Windows } from '../exchange/wide-operators.ts';
import { CountRows } from './count-rows.ts';
import { Filter } from './filter.ts';
import {
  type JoinColumn,
  joinColumns,
  type JoinKind,
  type JoinParams,
  type Schemas,
} from './join/join-columns.ts';
import { Joined } from './join/joined.ts';
import { MapRows } from './map-rows.ts';
import { type NamedExpression, Project, type Projection, selectColumns } from './project.ts';
import { Sample } from './sample.ts';
import { SortRows } from './sort-rows.ts';
import { Limit, TopRows } from './top-rows.ts';
import { Union } from './union.ts';

/** The columns and the types of values that the consumer of a plan needs. */
export interface Consumer {
  /** Columns that it needs; default: all. */
  readonly columns?: readonly string[];
  readonly needs?: ValueNeeds;
}

/** A cheaper plan with the same rows. Reads the source's metadata if the plan has operators. */
export async function optimize(
  plan: LogicalPlan,
  { columns, needs }: Consumer = {},
  signal?: AbortSignal,
): Promise<LogicalPlan> {
  const operators = operatorsOf(plan);
  if (operators.length === 0) return plan;
  const given = rootSource(plan);
  const request = sourceRequest(plan, columns, needs);
  const opened = given instanceof Union ? await given.opened(request.needs, signal) : undefined;
  const source = opened?.union ?? given;
  const schema = opened?.schema ?? (await schemaOf(fromSource(given), request.needs, signal));
  const first: Chain = { source, schema, operators, ...(columns && { wanted: columns }) };
  const chain = Object.values(rules).reduce((own, rule) => rule(own), first);
  return chain.operators.reduce(andThen, fromSource(chain.source));
}

/** A plan as a list: the source, then the operators in order. */
interface Chain {
  readonly source: Source;
  /** Schema of the source. */
  readonly schema: Schema;
  readonly operators: readonly Operator[];
  /** Columns of the result that the consumer needs; default: all. */
  readonly wanted?: readonly string[];
}

/** A pure function. Returns a cheaper chain with the same rows, or the chain itself. */
type Rule = (chain: Chain) => Chain;

/** Rewrites an expression over a projection's result as an expression over its input. */
function substitute(expression: Expression, columns: readonly NamedExpression[]): Expression {
  return withColumns(expression, (own) => columns.find(({ name }) => name === own.name)?.value ?? own);
}

/** Writes the fields of structs, such as `s.a`, as calls, so that an expression names columns alone. */
function withFields(expression: Expression, schema: Schema): Expression {
  const fields = columnsOf(expression).flatMap((name) => {
    const value = fieldOfStruct(name, schema);
    return value === undefined ? [] : [{ name, value }];
  });
  return fields.length === 0 ? expression : substitute(expression, fields);
}

/** The number of times that an expression reads each column. */
function uses(expression: Expression, counts = new Map<string, number>()): Map<string, number> {
  if (expression.kind === 'column') counts.set(expression.name, (counts.get(expression.name) ?? 0) + 1);
  else for (const part of partsOf(expression)) uses(part, counts);
  return counts;
}

/**
 * Writes each projection as a full list of columns, for which it needs the source's schema. A filter that
 * also drops columns (in a plan that was optimized before) becomes a filter and a projection. The other rules
 * handle only these forms.
 */
const resolveColumns: Rule = (chain) => {
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
    if (projection?.kind !== 'with' || projection.areNew) {
      endAdditions();
      joined.push(operator);
      continue;
    }
    const { columns } = projection;
    // The name `s.a` may be a field of the column `s`.
    const isAdded = (name: string) => added.has(name) || added.has(name.split('.')[0]);
    const isFree = columns.every(({ value }) => !columnsOf(value).some(isAdded));
    if (!isFree) endAdditions();
    for (const column of columns) added.set(column.name, column);
  }
  endAdditions();
  return joined;
}

function resolvedOf(operator: Operator, schema: Schema): Operator[] {
  if (operator instanceof Project) {
    const columns = operator
      .columns(schema)
      .map(({ name, value }) => ({ name, value: withFields(value, schema) }));
    return [new Project({ kind: 'select', columns })];
  }
  if (!(operator instanceof Filter)) return [operator];
  const filter = new Filter(withFields(operator.predicate, schema));
  if (operator.keeps === undefined) return [filter];
  const names = operator.outputSchema(schema).fields.map(({ name }) => name);
  return [filter, selectColumns(names)];
}

const noColumns = new Schema([]);

/** Merges two adjacent projections, if no expression would be computed more than once or be nested too deep. */
const mergeProjections: Rule = (chain) => {
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
const pruneColumns: Rule = (chain) => {
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

/** Removes aggregates of a grouping, and window functions, that neither later operators nor the consumer need. */
const pruneAggregates: Rule = (chain) => {
  const { source, operators, wanted } = chain;
  if (!(source instanceof Wide)) return chain;
  const needed = operators.reduceRight<readonly string[] | undefined>(
    (names, operator) => operator.requiredColumns(names),
    wanted,
  );
  const kept =
    needed &&
    source.operator.keeping?.(
      needed,
      chain.schema.fields.map(({ name }) => name),
    );
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
const dropIdle: Rule = (chain) => {
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

/**
 * Merges adjacent sorts into one, with the last sort's keys first. Removes sorts of rows that are only
 * counted.
 */
const joinSorts: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const [i, operator] of chain.operators.entries()) {
    if (!(operator instanceof SortRows)) operators.push(operator);
    else if (!isCounted(chain.operators.slice(i + 1))) {
      const before = operators.at(-1);
      if (before instanceof SortRows) operators.pop();
      const keys = before instanceof SortRows ? [...operator.keys, ...before.keys] : operator.keys;
      const first = keys.filter(({ column }, at) => keys.findIndex((key) => key.column === column) === at);
      const same = keys === operator.keys && first.length === keys.length;
      operators.push(same ? operator : new SortRows(first));
    }
  }
  return { ...chain, operators };
};

/** True if `after` leads to a count of the rows without an operator whose result depends on their order. */
function isCounted(after: readonly Operator[]): boolean {
  const end = after.find(
    (operator) =>
      !(operator instanceof Project || operator instanceof Filter || operator instanceof SortRows) &&
      !operator.isRowwise,
  );
  return end instanceof CountRows;
}

/**
 * A limit of more rows stays after projections, since before them the calling thread would compute the
 * columns of its rows alone.
 */
const FEW_ROWS = 1 << 17;

/** The same for a user's function of each row, which may be slow. */
const FEW_CALLS = 1000;

/**
 * Moves small limits before projections and functions of single rows, which then compute only those rows. Two
 * adjacent limits become the smaller.
 */
const pushLimits: Rule = (chain) => {
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    let at = operators.length;
    if (operator instanceof Limit) while (at > 0 && mayFollow(operators[at - 1], operator)) at--;
    const below = operators[at - 1];
    if (operator instanceof Limit && below instanceof Limit)
      operators[at - 1] = new Limit(Math.min(below.rows, operator.rows));
    else operators.splice(at, 0, operator);
  }
  return { ...chain, operators };
};

/** True if an operator that gives a row for each row may take the rows of a limit alone. */
function mayFollow(operator: Operator, { rows }: Limit): boolean {
  if (operator instanceof Project) return rows <= FEW_ROWS;
  return operator instanceof MapRows && rows <= FEW_CALLS;
}

/** Sorted rows are selected in memory, without a sort of all rows, only for limits of at most this number. */
const MOST_ROWS = 1 << 20;

/**
 * Replaces a sort followed by a small limit: takes the first rows of each split of the source, then the first
 * rows of these results, instead of sorting all rows.
 */
const takeTopRows: Rule = (chain) => {
  const operators = chain.operators.flatMap((operator, i) => {
    const [before, after] = [chain.operators[i - 1], chain.operators[i + 1]];
    if (operator instanceof SortRows && isSmall(after)) return [];
    if (!(before instanceof SortRows) || !isSmall(operator)) return [operator];
    return [new TopRows(before.keys, operator.rows, 'split'), new TopRows(before.keys, operator.rows, 'all')];
  });
  return { ...chain, operators };
};

function isSmall(operator: unknown): operator is Limit {
  return operator instanceof Limit && operator.rows <= MOST_ROWS;
}

/**
 * Moves filters before operators that do not change the columns they use, so that fewer rows reach those
 * operators. Filters directly after a source are also given to the source, so that it can skip splits.
 * Adjacent filters become one. A condition that may fail is never evaluated on rows that an earlier operator
 * or condition removes.
 */
const pushFilters: Rule = (chain) => {
  let { schema } = chain;
  const operators: Operator[] = [];
  for (const operator of chain.operators) {
    if (!(operator instanceof Filter)) operators.push(operator);
    else insert(operators, conditionsOf(joined(operators, operator), schema));
    schema = operator.outputSchema(schema);
  }
  return { ...chain, operators };
};

/** The conjuncts of a predicate. */
function conjunctsOf(predicate: Expression): Expression[] {
  return predicate.kind === 'call' && predicate.name === 'and'
    ? predicate.args.flatMap(conjunctsOf)
    : [predicate];
}

/**
 * Conditions of a filter, split at each `and`. If the operator before it is a filter, that one is removed
 * from the list and its conditions come first.
 */
function joined(operators: Operator[], { predicate }: Filter): Expression[] {
  const last = operators.at(-1);
  if (!(last instanceof Filter)) return conjunctsOf(predicate);
  operators.pop();
  return [...conjunctsOf(last.predicate), ...conjunctsOf(predicate)];
}

interface Condition {
  readonly expression: Expression;
  readonly mayFail: boolean;
}

function conditionsOf(conjuncts: readonly Expression[], schema: Schema): Condition[] {
  return conjuncts.map((expression) => ({
    expression,
    mayFail: checkPredicate(expression, schema).mayFail,
  }));
}

/** Inserts each condition as near to the source as it may move. */
function insert(operators: Operator[], conditions: readonly Condition[]): void {
  for (let at = operators.length, left = conditions; left.length > 0; at--) {
    const below = at > 0 ? operators[at - 1] : undefined;
    const passed: Condition[] = [];
    const stays: Expression[] = [];
    for (const { expression, mayFail } of left) {
      const isFree = !mayFail || (stays.length === 0 && !below?.isRowwise);
      const earlier = isFree && below ? before(expression, below) : undefined;
      if (earlier === undefined) stays.push(expression);
      else passed.push({ expression: earlier, mayFail });
    }
    left = passed;
    if (stays.length === 0) continue;
    if (below instanceof Filter) operators[at - 1] = filterOf([...conjunctsOf(below.predicate), ...stays]);
    else operators.splice(at, 0, filterOf(stays));
  }
}

/** A filter by the conjunction of some conditions. */
function filterOf([first, ...others]: readonly Expression[], keeps?: readonly string[]): Filter {
  return new Filter(
    others.reduce((all, one) => call('and', all, one), first),
    keeps,
  );
}

/**
 * The condition rewritten so that it can run before an operator; undefined if it must stay after the
 * operator.
 */
function before(conjunct: Expression, operator: Operator): Expression | undefined {
  if (operator.isRowwise || operator instanceof SortRows) return conjunct;
  if (!(operator instanceof Project) || operator.projection.kind !== 'select') return undefined;
  const { columns } = operator.projection;
  const names = columnsOf(conjunct);
  // Otherwise a computed column would be computed twice.
  const isPlain = names.every((name) => columns.find((one) => one.name === name)?.value.kind === 'column');
  return isPlain ? substitute(conjunct, columns) : undefined;
}

const sides: readonly Side[] = ['left', 'right'];

/**
 * For each kind of join, the sides that may be filtered before it: the result has either only their rows with
 * a match, or all of their rows.
 */
const filtered: Readonly<Record<JoinKind, readonly Side[]>> = {
  inner: sides,
  left: ['left'],
  right: ['right'],
  full: [],
  semi: ['left'],
  anti: ['left'],
};

/**
 * Moves a condition after a join to before it, if it uses columns of one side and the result does not change.
 * A condition on the keys moves to both sides.
 */
const pushIntoJoin: Rule = (chain) => {
  const [first, ...rest] = chain.operators;
  if (!(chain.source instanceof Joined) || !(first instanceof Filter)) return chain;
  const opened = openedJoin(chain.source);
  if (opened === undefined) return chain;
  const { join, columns } = opened;
  const pushed: Record<Side, Expression[]> = { left: [], right: [] };
  const stays = conjunctsOf(first.predicate).filter((conjunct) => {
    const found = sidesOf(conjunct, columns, chain.schema, join.params);
    for (const side of found) pushed[side].push(renamed(conjunct, columns, side));
    return found.length === 0;
  });
  if (pushed.left.length + pushed.right.length === 0) return chain;
  const [left, right] = join.inputs;
  const source = join.of([withFilter(left, pushed.left), withFilter(right, pushed.right)]);
  return { ...chain, source, operators: [...remainder(stays, first, chain.schema), ...rest] };
};

/** A join with keys of equal types, and its columns; undefined if its inputs were not opened. */
function openedJoin(
  source: Joined,
): { readonly join: Joined; readonly columns: readonly JoinColumn[] } | undefined {
  const schemas = schemasOf(source);
  const join = schemas && source.comparable(schemas);
  const own = join && schemasOf(join);
  return own && { join, columns: joinColumns(join.params, own) };
}

function schemasOf({ inputs }: Joined): Schemas | undefined {
  const [left, right] = inputs.map(knownSchema);
  return left && right && { left, right };
}

function withFilter(input: LogicalPlan, conditions: readonly Expression[]): LogicalPlan {
  return conditions.length === 0 ? input : andThen(input, filterOf(conditions));
}

/** The sides on which a condition can be evaluated before the join. */
function sidesOf(
  conjunct: Expression,
  columns: readonly JoinColumn[],
  schema: Schema,
  { kind, asOf }: JoinParams,
): readonly Side[] {
  const named = columnsOf(conjunct).map((name) => columns.find(({ field }) => field.name === name));
  // A condition that may fail is not evaluated on rows that the join removes.
  if (named.length === 0 || checkPredicate(conjunct, schema).mayFail) return [];
  const keysAlone = named.every((column) => column?.left !== undefined && column.right !== undefined);
  // Equal floats may have different bits, such as -0 and 0.
  const areExact = named.every((column) => column !== undefined && !DataType.isFloat(column.field.type));
  if (keysAlone && areExact) return sides;
  // Without a row of the right that an asOf join would take, it would take an earlier one.
  return filtered[asOf === undefined ? kind : 'left'].filter((side) =>
    named.every((column) => column !== undefined && isOf(column, side, kind)),
  );
}

/** True if a column's value comes from the side. */
function isOf(column: JoinColumn, side: Side, kind: JoinKind): boolean {
  if (column[side] === undefined) return false;
  const isKey = column.left !== undefined && column.right !== undefined;
  return !isKey || !DataType.isFloat(column.field.type) || side === (kind === 'right' ? 'right' : 'left');
}

function renamed(conjunct: Expression, columns: readonly JoinColumn[], side: Side): Expression {
  const names = columns.flatMap((column) => {
    const name = column[side];
    return name === undefined ? [] : [{ name: column.field.name, value: { kind: 'column', name } as const }];
  });
  return substitute(conjunct, names);
}

/** A filter with the remaining conditions; if none remain, only its selection of columns. */
function remainder(stays: readonly Expression[], { keeps }: Filter, { fields }: Schema): Operator[] {
  if (stays.length > 0) return [filterOf(stays, keeps)];
  const names = fields.map(({ name }) => name).filter((name) => keeps?.includes(name));
  return keeps ? [selectColumns(names)] : [];
}

/**
 * Moves operators that work row by row from after a union to its inputs. There threads can run them, and a
 * source can skip rows.
 */
const pushIntoUnion: Rule = (chain) => {
  const { source, schema, operators } = chain;
  if (!(source instanceof Union)) return chain;
  const first = operators.findIndex((operator) => !isOfRows(operator));
  const moved = first < 0 ? operators : operators.slice(0, first);
  if (moved.length === 0) return chain;
  // Inputs may have another order of columns; the result's order and samples depend on it.
  const inOrder = selectColumns(schema.fields.map(({ name }) => name));
  return {
    ...chain,
    source: source.of(source.inputs.map((input) => [inOrder, ...moved].reduce(andThen, input))),
    schema: moved.reduce((own, operator) => operator.outputSchema(own), schema),
    operators: operators.slice(moved.length),
  };
};

function isOfRows(operator: Operator): boolean {
  return operator instanceof Filter || operator instanceof Project || operator.isRowwise === true;
}

/** Gives a condition on ranks to their windows, which then exchange only rows that may meet it. The filter stays. */
const takeFirstRows: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(chain.source instanceof Wide) || !(first instanceof Filter)) return chain;
  const { operator, inputs } = chain.source;
  if (!(operator instanceof Windows)) return chain;
  const fewer = operator.within(boundsOf(checkPredicate(first.predicate, chain.schema)));
  return fewer === undefined ? chain : { ...chain, source: new Wide(fewer, inputs) };
};

/** Moves conditions to before an exchange where that is allowed, so that fewer rows are exchanged. */
const pushIntoWide: Rule = (chain) => {
  const { source, operators } = chain;
  const [filter, ...others] = operators;
  if (!(source instanceof Wide) || !(filter instanceof Filter)) return chain;
  const { filterable } = source.operator;
  const conjuncts = conjunctsOf(filter.predicate);
  const isOfInput = (names: readonly string[]) =>
    filterable === 'all' || (names.length > 0 && names.every((name) => filterable.includes(name)));
  const [moved, left] = [true, false].map((wanted) =>
    conjuncts.filter((conjunct) => isOfInput(columnsOf(conjunct)) === wanted),
  );
  if (moved.length === 0) return chain;
  return {
    ...chain,
    source: source.of([andThen(source.inputs[0], filterOf(moved))]),
    operators: left.length === 0 ? others : [filterOf(left), ...others],
  };
};

/**
 * Passes the first filter to the source, which then skips files and row groups that cannot match, by folder
 * names and statistics. The filter stays, since other rows may not match either.
 */
const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const { predicate } = first;
  const bounds = boundsOf(checkPredicate(predicate, chain.schema));
  return { ...chain, source: chain.source.within(bounds, predicate) };
};

/** Rules by name (as `explain` prints them), in the order of application. */
export const rules: Readonly<Record<string, Rule>> = {
  'resolve columns': resolveColumns,
  'push filters': pushFilters,
  'push into joins': pushIntoJoin,
  'join sorts': joinSorts,
  'push limits': pushLimits,
  'take top rows': takeTopRows,
  'merge projections': mergeProjections,
  'prune columns': pruneColumns,
  'drop what does nothing': dropIdle,
  'push into unions': pushIntoUnion,
  'take first rows of groups': takeFirstRows,
  'push into exchanges': pushIntoWide,
  'prune aggregates': pruneAggregates,
  'push bounds to the source': pushToSource,
};
