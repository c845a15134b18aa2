type Row = readonly string[];

/** Cells as a table of Markdown; the first row is the heading. */
export function markdownTable([head, ...rows]: readonly Row[]): string {
  const line = (cells: Row) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return `${line(head)}|${'---|'.repeat(head.length)}\n${rows.map(line).join('')}`;
}
