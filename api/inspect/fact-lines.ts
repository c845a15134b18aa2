/** A title, then names and values in two columns; undefined values are left out. */
export function factLines(title: string, entries: Readonly<Record<string, string | undefined>>): string {
  const known = Object.entries(entries).filter(([, value]) => value !== undefined);
  const width = Math.max(...known.map(([name]) => name.length));
  return [title, ...known.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)].join('\n');
}

/** The first of the texts, and the number of the others: "a, b, c and 4 more". */
export function someOf(texts: readonly string[], most: number): string {
  const rest = texts.length - most;
  return texts.slice(0, most).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}
