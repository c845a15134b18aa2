/** Names and values in two columns; facts without a value are left out. */
export function facts(
  entries: readonly (readonly [name: string, value: string | null | undefined])[],
): string {
  const known = entries.filter(([, value]) => typeof value === 'string');
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}
