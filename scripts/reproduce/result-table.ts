import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Rows of a published table. */
interface PublishedRows {
  readonly source: string;
  readonly rows: readonly ResultRow[];
}

interface ResultRow {
  readonly name: string;
  /** By metric, such as recall@20. */
  readonly values: Readonly<Record<string, number>>;
}

export function publishedRows(set: string): PublishedRows {
  const all = JSON.parse(readFileSync(join(import.meta.dirname, 'published.json'), 'utf8')) as Readonly<
    Record<string, PublishedRows>
  >;
  return all[set];
}

/** Rows as lines of text, a column for each metric. */
export function resultTable(rows: readonly ResultRow[]): string {
  return textTable(resultCells(rows));
}

/** The heading, with the metrics by their length, and a row for each method. */
export function resultCells(rows: readonly ResultRow[]): string[][] {
  const metrics = [...new Set(rows.flatMap(({ values }) => Object.keys(values)))].toSorted(byNameAndLength);
  return [
    ['method', ...metrics],
    ...rows.map(({ name, values }) => [name, ...metrics.map((metric) => values[metric]?.toFixed(4) ?? '')]),
  ];
}

function byNameAndLength(a: string, b: string): number {
  const [first, second] = [a, b].map((metric) => metric.split('@'));
  return Number(first[1]) - Number(second[1]) || first[0].localeCompare(second[0]);
}

/** Cells as lines of text, each column as wide as its widest cell. */
export function textTable(cells: readonly (readonly string[])[]): string {
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  return cells
    .map((row) =>
      row
        .map((cell, k) => cell.padEnd(widths[k]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Cells as a table of Markdown; the first row is the heading. */
export function markdownTable([head, ...rows]: readonly (readonly string[])[]): string {
  const line = (row: readonly string[]) => `| ${row.join(' | ')} |\n`;
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`;
}
