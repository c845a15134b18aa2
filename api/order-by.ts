import { UsageError } from '../engine/errors.ts';
import type { SortKey } from '../engine/sorting/sort-keys.ts';
import type { Operator } from '../engine/stream/operator.ts';
import { type NamedExpression, Project } from '../operators/dataflow/project.ts';
import { SortRows } from '../operators/dataflow/sort-rows.ts';
import { checkOptions } from './check-options.ts';
import { shown } from '../engine/shown.ts';
import { Column } from './expressions.ts';
import { SortOrder } from './sort-order.ts';

/** A key of `orderBy`: a name or an expression, with or without a direction, or an object. */
export type OrderKey = string | Column | SortOrder | SortKey;

/** The operators of `orderBy`. Keys that are expressions become columns, which are removed after sorting. */
export function sortingBy(keys: readonly OrderKey[]): Operator[] {
  const computed: NamedExpression[] = [];
  const named = keys.map((key): SortKey => {
    const { expression, descending, nulls } = orderOf(key);
    const shape = { ...(descending && { descending }), ...(nulls && { nulls }) };
    if (expression.kind === 'column') return { column: expression.name, ...shape };
    const name = `sort key ${computed.length + 1}`;
    computed.push({ name, value: expression });
    return { column: name, ...shape };
  });
  const sort = new SortRows(named);
  if (computed.length === 0) return [sort];
  const names = computed.map(({ name }) => name);
  return [new Project({ kind: 'with', columns: computed }), sort, new Project({ kind: 'drop', names })];
}

function orderOf(key: OrderKey): SortOrder {
  if (key instanceof SortOrder) return key;
  if (key instanceof Column) return key.asc();
  if (typeof key === 'string') return new SortOrder({ kind: 'column', name: key }, false);
  if (typeof key !== 'object' || key === null || Array.isArray(key))
    throw new UsageError(`orderBy takes names and columns, got ${shown(key)}`, {
      advice: "Write orderBy('user', col('rating').desc())",
    });
  checkOptions('a key of orderBy', key, ['column', 'descending', 'nulls'], "{ column: 'user' }");
  const { column, descending = false, nulls } = key;
  if (typeof column !== 'string')
    throw new UsageError(`the column of a key of orderBy must be a name, got ${shown(column)}`);
  if (typeof descending !== 'boolean')
    throw new UsageError(`descending of a key of orderBy must be true or false, got ${shown(descending)}`);
  if (nulls !== undefined && nulls !== 'first' && nulls !== 'last')
    throw new UsageError(`nulls of a key of orderBy must be first or last, got ${shown(nulls)}`);
  return new SortOrder({ kind: 'column', name: column }, descending, nulls);
}
