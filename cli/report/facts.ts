import { withoutControls } from '../../engine/format.ts';
import type { Id, ItemNames } from '../../index.ts';
/** Names and values in two columns; facts without a value are left out. */
export function facts(
  entries: readonly (readonly [name: string, value: string | null | undefined])[],
): string {
  const known = entries.filter(([, value]) => typeof value === 'string');
  const width = Math.max(...known.map(([name]) => name.length));
  return known.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join('\n');
}

/** Most characters of a name in a table. */
const MOST_SHOWN = 60;

/** Characters that change the direction of the following text, even beyond the name. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** A name on one line of a table; empty for an item without a name. */
export function shownName(name: string | null | undefined): string {
  const line = [...withoutControls((name ?? '').replaceAll(/\s+/g, ' ').replaceAll(TURNS, ''))];
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN - 1).join('')}…` : line.join('');
}

/** Lines before a table: the requested ids with their names. Empty if none has a name. */
export function namesAbove(ids: readonly Id[], names: ItemNames | undefined): string {
  const named = [...new Set(ids)].filter((id) => names?.get(id) !== undefined);
  return named.length === 0 ? '' : `${facts(named.map((id) => [String(id), shownName(names?.get(id))]))}\n`;
}
