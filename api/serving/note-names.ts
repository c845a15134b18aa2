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

/** The reason that no item of a model has a name, with an id of each kind; undefined where one has. */
function mismatch(names: ItemNames, ids: Ids): string | undefined {
  if (names.match(ids).unknown < names.size) return undefined;
  const shown = (id: Id | undefined) => {
    const isText = typeof id === 'string' && !/^\d+$/.test(id);
    return isText ? `texts such as "${id}"` : `numbers such as ${String(id)}`;
  };
  const kinds = `the ids of the names are ${shown(names.firstId)}, the model's are ${shown(ids[0])}`;
  return `no id of the names is an item of the model: ${kinds}`;
}

interface IdPlace {
  readonly file: string;
  readonly column: string;
}

/** Throws DataError where the model has none of the ids. */
export function requireNamesOf(names: ItemNames, ids: Ids, place: IdPlace): void {
  const problem = mismatch(names, ids);
  if (problem === undefined) return;
  const advice = 'Name the column that has the ids of the ratings with idCol';
  throw new DataError(problem, { phase: 'read item names', ...place, advice });
}

/** Reports the differences between names that were read before a training, and its items. */
export function noteMatch(names: ItemNames, ids: Ids, onEvent: EventSink): void {
  const problem = mismatch(names, ids);
  if (problem !== undefined) onEvent({ type: 'warning', text: `${problem}; items are shown as ids` });
  else report('item names', differences(names, ids), onEvent);
}

/** Reports in one note what the names lack, and nothing if all items have a name. */
export function noteNames(names: ItemNames, found: ReadNames, onEvent: EventSink | undefined): void {
  const { path, columns, missing, ids } = found;
  const { duplicates, unnamed } = names;
  const parts: string[] = [];
  if (columns.byPosition) {
    parts.push('there is no header, so the first column is taken as the ids and the second as the names');
  }
  if (missing > 0) {
    parts.push(`${counted(missing, 'row')} without an id ${missing === 1 ? 'is' : 'are'} left out`);
  }
  if (duplicates > 0) {
    const repeat = duplicates === 1 ? 'repeats' : 'repeat';
    parts.push(`${counted(duplicates, 'row')} ${repeat} an id, of which the first name counts`);
  }
  if (unnamed > 0) parts.push(`${counted(unnamed, 'id')} ${unnamed === 1 ? 'has' : 'have'} no name`);
  if (columns.unreadGenre !== undefined) {
    parts.push(`the column ${columns.unreadGenre} has values other than text and is not read as genres`);
  }
  if (ids !== undefined) parts.push(...differences(names, ids));
  report(`item names of ${path}`, parts, onEvent);
}

/**
 * Items without a name. Names of more items than the model has are no difference, unless most items have
 * none.
 */
function differences(names: ItemNames, ids: Ids): string[] {
  const { items, named, unknown } = names.match(ids);
  const isSparse = 2 * named < items;
  const parts: string[] = [];
  if (isSparse && unknown > 0) {
    parts.push(`${counted(unknown, 'id')} ${unknown === 1 ? 'is no item' : 'are no items'} of the model`);
  }
  const unnamed = items - named;
  if (unnamed > 0) {
    const verbs = unnamed === 1 ? 'has no name and is' : 'have no name and are';
    parts.push(`${formatCount(unnamed)} of ${counted(items, 'item')} ${verbs} shown as ids`);
  }
  return parts;
}

function report(subject: string, parts: readonly string[], onEvent: EventSink | undefined): void {
  if (parts.length > 0) onEvent?.({ type: 'note', text: `${subject}: ${parts.join('; ')}` });
}
