import type { JsonObject } from '../../engine/json.ts';
import type { SortKey } from '../../engine/sorting/sort-keys.ts';

/**
 * The way in which rows are divided among the parts of an exchange.
 *
 *     hash     rows with the same values of some columns are in one part
 *     range    all rows of a part come before those of the next part in the order of sort keys
 *     evenly   in turn
 */
export type Exchange =
  | (JsonObject & { readonly kind: 'hash'; readonly columns: readonly string[] })
  | (JsonObject & { readonly kind: 'range'; readonly keys: readonly SortKey[] })
  | (JsonObject & { readonly kind: 'evenly' });

export function describeExchange(by: Exchange): string {
  if (by.kind === 'hash') return `by hash of ${by.columns.join(', ')}`;
  return by.kind === 'range' ? `by ranges of ${by.keys.map(({ column }) => column).join(', ')}` : 'evenly';
}

/** The end of a task that divides its rows. */
export type ExchangeParams = JsonObject & {
  readonly by: Exchange;
  readonly parts: number;
  /** Number of the task among those of the exchange, in the order of rows. */
  readonly task: number;
};
