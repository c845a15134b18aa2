import { withoutControls } from '../../engine/format.ts';
import type { Id, ItemNames } from '../../index.ts';
import { facts } from './facts.ts';

/** Characters of a name in a table. */
const MOST_SHOWN = 60;

/** Characters that turn the direction of the text that follows, out of the name as well. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** A name on one line of a table; nothing for an item without one. */
export function shownName(name: string | null | undefined): string {
  const line = [...withoutControls((name ?? '').replaceAll(/\s+/g, ' ').replaceAll(TURNS, ''))];
  return line.length > MOST_SHOWN ? `${line.slice(0, MOST_SHOWN - 1).join('')}…` : line.join('');
}

/** Lines that precede a table: the ids that were asked for, with their names. Empty where none has a name. */
export function namesAbove(ids: readonly Id[], names: ItemNames | undefined): string {
  const named = [...new Set(ids)].filter((id) => names?.get(id) !== undefined);
  return named.length === 0 ? '' : `${facts(named.map((id) => [String(id), shownName(names?.get(id))]))}\n`;
}
