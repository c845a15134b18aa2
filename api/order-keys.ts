import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import type { Expression } from '../engine/expressions/expression.ts';
import type { SortKey } from '../engine/sorting/sort-keys.ts';
import { checkOptions } from './check-options.ts';
import { Column, SortOrder } from './expressions.ts';

/** A key of `orderBy`: a name or an expression, with or without a direction, or an object. */
export type OrderKey<Name extends string = string> =
  | Name
  | Column
  | SortOrder
  | (SortKey & { readonly column: Name });

/** Keys with names of columns; `nameOf` names the column of an expression. `what`: their place, in errors. */
export function namedKeys(
  what: string,
  keys: readonly OrderKey[],
  nameOf: (value: Expression) => string,
): SortKey[] {
  return keys.map((key) => {
    const { expression, descending, nulls } = orderOf(what, key);
    return { column: nameOf(expression), ...(descending && { descending }), ...(nulls && { nulls }) };
  });
}

/** A key's expression and order. `what`: its place, in errors. */
export function orderOf(what: string, key: OrderKey): SortOrder {
  if (key instanceof SortOrder) return key;
  if (key instanceof Column) return key.asc();
  if (typeof key === 'string') return new SortOrder({ kind: 'column', name: key }, false);
  if (typeof key !== 'object' || key === null || Array.isArray(key))
    throw new UsageError(`${what} takes names and columns, got ${shown(key)}`, {
      advice: "Write orderBy('user', col('rating').desc())",
    });
  checkOptions(`a key of ${what}`, key, ['column', 'descending', 'nulls'], "{ column: 'user' }");
  const { column, descending = false, nulls } = key;
  if (typeof column !== 'string')
    throw new UsageError(`the column of a key of ${what} must be a name, got ${shown(column)}`);
  if (typeof descending !== 'boolean')
    throw new UsageError(`descending of a key of ${what} must be true or false, got ${shown(descending)}`);
  if (nulls !== undefined && nulls !== 'first' && nulls !== 'last')
    throw new UsageError(`nulls of a key of ${what} must be first or last, got ${shown(nulls)}`);
  return new SortOrder({ kind: 'column', name: column }, descending, nulls);
}
