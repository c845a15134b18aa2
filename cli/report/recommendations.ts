import type { RecordBatch } from 'apache-arrow';
import { textTable } from '../../api/inspect/text-table.ts';
import { plainValues } from '../../engine/values/plain-values.ts';
import type { Id, ItemNames, Model } from '../../index.ts';

type IdForms = Model['idForms'];
import { shownName } from './facts.ts';

export interface Recommendation {
  readonly user: number | string;
  /** From 1. */
  readonly rank: number;
  readonly item: number | string;
  /** With item names: null for an item without a name. */
  readonly name?: string | null;
  readonly prediction: number;
  /** True in rows of an unknown user, whose items are the most popular. */
  readonly fallback?: boolean;
}

/** An id for JSON: a number if all ids of its side are numbers, else text. */
export function jsonId(id: Id, form: IdForms['user']): number | string {
  const isNumber =
    form === 'number' && /^\s*[+-]?\d+\s*$/.test(String(id)) && Number.isSafeInteger(Number(id));
  return isNumber ? Number(id) : String(id);
}

/**
 * The rows {user, rank, item, prediction} of a batch, as objects for printing; `forms`: the id forms of the
 * first and third column.
 */
export function recommendationRows(batch: RecordBatch, forms: IdForms): Recommendation[] {
  const [users, ranks, items, predictions, fallbacks] = batch.data.children.map(plainValues);
  return Array.from({ length: batch.numRows }, (_, row) => ({
    user: jsonId(users(row) as Id, forms.user),
    rank: Number(ranks(row)),
    item: jsonId(items(row) as Id, forms.item),
    prediction: Number(predictions(row)),
    ...(fallbacks ? { fallback: fallbacks(row) === true } : {}),
  }));
}

/** The rows with the names of their items. */
export function withItemNames(
  rows: readonly Recommendation[],
  names: ItemNames | undefined,
): Recommendation[] {
  if (names === undefined) return [...rows];
  return rows.map(({ user, rank, item, ...rest }) => ({
    user,
    rank,
    item,
    name: names.get(item) ?? null,
    ...rest,
  }));
}

/** A table with each user's items, best first, and their names if the rows have them. */
export function recommendationTable(
  rows: readonly Recommendation[],
  head: readonly string[] = ['user', 'rank', 'item', 'prediction'],
): string {
  const isNamed = rows.some(({ name }) => name !== undefined);
  const cells = rows.map(({ user, rank, item, name, prediction, fallback }, i) => {
    const isFirst = i === 0 || rows[i - 1].user !== user;
    return [
      isFirst ? String(user) : '',
      String(rank),
      String(item),
      ...(isNamed ? [shownName(name)] : []),
      fallback ? `${prediction} ratings` : prediction.toFixed(4),
    ];
  });
  return textTable(
    {
      head: isNamed ? [...head.slice(0, 3), 'name', ...head.slice(3)] : head,
      colAligns: isNamed
        ? ['right', 'right', 'right', 'left', 'right']
        : ['right', 'right', 'right', 'right'],
    },
    cells,
  );
}
