import { DataType, type Schema } from 'apache-arrow';
import { checkPredicate } from '../../../engine/expressions/check.ts';
import { call, columnsOf, type Expression } from '../../../engine/expressions/expression.ts';
import type { Side } from '../../../engine/stream/binary-operator.ts';
import { andThen, knownSchema, type LogicalPlan } from '../../../engine/stream/logical-plan.ts';
import type { Operator } from '../../../engine/stream/operator.ts';
import { Filter } from '../filter.ts';
import { Joined } from '../join/joined.ts';
import { type JoinColumn, joinColumns, type Schemas } from '../join/join-columns.ts';
import type { JoinKind } from '../join/join-kinds.ts';
import { Project } from '../project.ts';
import type { Rule } from './chain.ts';
import { conjunctsOf } from './push-filters.ts';
import { substitute } from './substitute.ts';

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
  return conditions.length === 0 ? input : andThen(input, new Filter(all(conditions)));
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

function all([first, ...others]: readonly Expression[]): Expression {
  return others.reduce((every, one) => call('and', every, one), first);
}

/** A filter with the remaining conditions; if none remain, only its selection of columns. */
function remainder(stays: readonly Expression[], { keeps }: Filter, { fields }: Schema): Operator[] {
  if (stays.length > 0) return [new Filter(all(stays), keeps)];
  const names = fields.map(({ name }) => name).filter((name) => keeps?.includes(name));
  const columns = names.map((name) => ({ name, value: { kind: 'column', name } }) as const);
  return keeps ? [new Project({ kind: 'select', columns })] : [];
}
