import { DataError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { counted, formatCount } from '../../engine/format.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import type { NameColumns } from './name-columns.ts';

/** Ids of a model's items, as its arrays have them. */
type Ids = ArrayLike<Id> & Iterable<Id>;

interface ReadNames {
  readonly path: string;
  readonly columns: NameColumns;
  /** Rows without an id. */
  readonly missing: number;
  readonly ids: Ids | undefined;
}

/** Throws DataError where the model has none of the ids, with an id of each and their kinds. */
export function requireNamesOf(names: ItemNames, ids: Ids, place: { readonly file: string; readonly column: string }): void {
  if (names.match(ids).unknown < names.size) return;
  const kind = (id: Id | undefined) => (typeof id === 'string' && !/^\d+$/.test(id) ? `texts such as "${id}"` : `numbers such as ${String(id)}`);
  const summary = `no id of the names is an item of the model: the ids of the names are ${kind(names.firstId)}, the model's are ${kind(ids[0])}`;
  throw new DataError(summary, { phase: 'read item names', ...place, advice: 'Name the column that has the ids of the ratings with idCol' });
}

/** Reports in one note what the names lack, and nothing where they lack nothing. */
export function noteNames(names: ItemNames, { path, columns, missing, ids }: ReadNames, onEvent: EventSink | undefined): void {
  const parts: string[] = [];
  if (columns.byPosition) parts.push(`there is no header, so the first column is taken as the ids and the second as the names`);
  if (missing > 0) parts.push(`${counted(missing, 'row')} without an id ${missing === 1 ? 'is' : 'are'} left out`);
  if (names.duplicates > 0) parts.push(`${counted(names.duplicates, 'row')} ${names.duplicates === 1 ? 'repeats' : 'repeat'} an id, of which the first name counts`);
  if (names.unnamed > 0) parts.push(`${counted(names.unnamed, 'id')} ${names.unnamed === 1 ? 'has' : 'have'} no name`);
  if (ids !== undefined) {
    const { items, named, unknown } = names.match(ids);
    if (unknown > 0) parts.push(`${counted(unknown, 'id')} ${unknown === 1 ? 'is no item' : 'are no items'} of the model`);
    if (named < items) parts.push(`${formatCount(items - named)} of ${counted(items, 'item')} ${items - named === 1 ? 'has' : 'have'} no name and ${items - named === 1 ? 'is' : 'are'} shown as ids`);
  }
  if (parts.length > 0) onEvent?.({ type: 'note', text: `item names of ${path}: ${parts.join('; ')}` });
}
