import type { Table as Rows } from 'apache-arrow';
import { textTable } from './text-table.ts';

/** Most characters of a value to show. */
const MOST_CHARACTERS = 40;

/** Rows as a text table; `more`: further rows follow. */
export function tableText(rows: Rows, more: boolean): string {
  const names = rows.schema.fields.map(({ name }) => name);
  const table = textTable(
    { head: names, compact: false },
    Array.from(rows, (row) => names.map((name) => valueText(row[name]))),
  );
  return `${table}${more ? `\nonly the first ${rows.numRows} rows` : ''}`;
}

function valueText(value: unknown): string {
  const text =
    value instanceof Date
      ? value.toISOString()
      : value === null || value === undefined
        ? 'null'
        : String(value);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}
