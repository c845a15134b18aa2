import { DataError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { counted, formatCount } from '../../engine/format.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import type { NameColumns } from './name-columns.ts';

/** Ids of a model's items, as in its arrays. */
type Ids = ArrayLike<Id> & Iterable<Id>;

interface ReadNames {
  readonly path: string;
  readonly columns: NameColumns;
  /** Number of rows without an id. */
  readonly missing: number;
  readonly ids: Ids | undefined;
}

/**
 * A text that explains why no item of a model has a name, with an id of each as an example; undefined if any
 * item has one.
 */
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

/** Throws DataError if none of the ids with a name is an item of the model. */
export function requireNamesOf(names: ItemNames, ids: Ids, place: IdPlace): void {
  const problem = mismatch(names, ids);
  if (problem === undefined) return;
  const advice = 'Name the column that has the ids of the ratings with idCol';
  throw new DataError(problem, { phase: 'read item names', ...place, advice });
}

/**
 * Compares names that were read before a training with the trained model's items, and reports differences.
 */
export function noteMatch(names: ItemNames, ids: Ids, onEvent: EventSink): void {
  const problem = mismatch(names, ids);
  if (problem !== undefined) onEvent({ type: 'warning', text: `${problem}; items are shown as ids` });
  else report('item names', differences(names, ids), onEvent);
}

/** Reports in one note the problems of a file of names; no note if all items have a name. */
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

/** Texts about items without a name. Names of other ids are mentioned only if most items have no name. */
function differences(names: ItemNames, ids: Ids): string[] {
  const { items, named, unknown } = names.match(ids);
  const isSparse = 2 * named < items;
  const parts: string[] = [];
  if (isSparse && unknown > 0) {
    parts.push(
      `${counted(unknown, 'id')} ${unknown === 1 ? 'is not an item' : 'are not items'} of the model`,
    );
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
