import Table, { type TableConstructorOptions } from 'cli-table3';
import { withoutControls } from '../../engine/format.ts';

/** The look of a table. `compact`: no line between rows. */
export interface TableLook extends Pick<TableConstructorOptions, 'colAligns'> {
  readonly head: readonly string[];
  readonly compact?: boolean;
}

/**
 * Rows of text as a table without colours, since the output may go to a pipe. Cells are cleaned before their
 * widths are measured: the table library would treat escapes in them as colours.
 */
export function textTable(
  { head, compact = true, ...look }: TableLook,
  rows: Iterable<readonly string[]>,
): string {
  const table = new Table({
    ...look,
    head: head.map(withoutControls),
    style: { head: [], border: [], compact },
  });
  for (const row of rows) table.push(row.map(withoutControls));
  return table.toString();
}
