import { DataType, type Schema } from 'apache-arrow';
import { boundsOf } from '../../../engine/expressions/bounds.ts';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { call, columnsOf, type Expression } from '../../../engine/expressions/expression.ts';
import type { Side } from '../../../engine/stream/binary-operator.ts';
import { andThen, knownSchema, type LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Wide } from '../../exchange/wide-operators.ts';
import { Filter } from '../filter.ts';
import { type JoinColumn, joinColumns, type JoinKind, type Schemas } from '../join/join-columns.ts';
import { Joined } from '../join/joined.ts';
import { Project, selectColumns } from '../project.ts';
import { SortRows } from '../sort-rows.ts';
import { Union } from '../union.ts';
import { type Rule, substitute } from './rule.ts';

/**
 * Moves filters before operators that do not change the columns they use, so that fewer rows reach those
 * operators. Filters directly after a source are also given to the source, so that it can skip splits.
 * Adjacent filters become one. A condition that may fail is never evaluated on rows that an earlier operator
 * or condition removes.
 */
export const pushFilters: Rule = (chain) => {
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
export const pushIntoJoin: Rule = (chain) => {
  const [first, ...rest] = chain.operators;
  if (!(chain.source instanceof Joined) || !(first instanceof Filter)) return chain;
  const opened = openedJoin(chain.source);
  if (opened === undefined) return chain;
  const { join, columns } = opened;
  const pushed: Record<Side, Expression[]> = { left: [], right: [] };
  const stays = conjunctsOf(first.predicate).filter((conjunct) => {
    const found = sidesOf(conjunct, columns, chain.schema, join.params.kind);
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
  kind: JoinKind,
): readonly Side[] {
  const named = columnsOf(conjunct).map((name) => columns.find(({ field }) => field.name === name));
  // A condition that may fail is not evaluated on rows that the join removes.
  if (named.length === 0 || checkPredicate(conjunct, schema).mayFail) return [];
  const keysAlone = named.every((column) => column?.left !== undefined && column.right !== undefined);
  // Equal floats may have different bits, such as -0 and 0.
  const areExact = named.every((column) => column !== undefined && !DataType.isFloat(column.field.type));
  if (keysAlone && areExact) return sides;
  return filtered[kind].filter((side) =>
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
export const pushIntoUnion: Rule = (chain) => {
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

/** Moves conditions to before an exchange where that is allowed, so that fewer rows are exchanged. */
export const pushIntoWide: Rule = (chain) => {
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
export const pushToSource: Rule = (chain) => {
  const [first] = chain.operators;
  if (!(first instanceof Filter) || chain.source.within === undefined) return chain;
  const { predicate } = first;
  const bounds = boundsOf(checkPredicate(predicate, chain.schema));
  return { ...chain, source: chain.source.within(bounds, predicate) };
};
