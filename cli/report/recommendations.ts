import type { RecordBatch } from 'apache-arrow';
import Table from 'cli-table3';

export interface Recommendation {
  /** 64-bit ids are texts: JSON's numbers can't hold them. */
  readonly user: number | string;
  /** From 1. */
  readonly rank: number;
  readonly item: number | string;
  readonly prediction: number;
  /** True in rows of a user that the model does not know, whose items are the most popular. */
  readonly fallback?: boolean;
}

/** The rows {user, rank, item, prediction} of a batch, as objects for printing. */
export function recommendationRows(batch: RecordBatch): Recommendation[] {
  const [users, ranks, items, predictions, fallbacks] = [0, 1, 2, 3, 4].map((column) => batch.getChildAt(column));
  const id = (value: unknown) => (typeof value === 'number' ? value : String(value));
  return Array.from({ length: batch.numRows }, (_, row) => ({
    user: id(users?.get(row)),
    rank: Number(ranks?.get(row)),
    item: id(items?.get(row)),
    prediction: Number(predictions?.get(row)),
    ...(fallbacks ? { fallback: fallbacks.get(row) === true } : {}),
  }));
}

/** A table with each user's items below each other, best first. */
export function recommendationTable(rows: readonly Recommendation[], head: readonly string[] = ['user', 'rank', 'item', 'prediction']): string {
  const table = new Table({
    head: [...head],
    colAligns: ['right', 'right', 'right', 'right'],
    // Without colours, since the output may go to a pipe.
    style: { head: [], border: [], compact: true },
  });
  rows.forEach(({ user, rank, item, prediction, fallback }, i) => {
    const isFirst = i === 0 || rows[i - 1].user !== user;
    table.push([isFirst ? String(user) : '', String(rank), String(item), fallback ? `${prediction} ratings` : prediction.toFixed(4)]);
  });
  return table.toString();
}
