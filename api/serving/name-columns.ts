import { Schema, type Data, Field, Utf8, vectorFromArray } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import type { EventSink } from '../../engine/events.ts';
import { counted, formatCount } from '../../engine/format.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import type { BatchStream } from '../../engine/stream/stream.ts';
import { plainValues } from '../../engine/values/plain-values.ts';
import { RowOperator, sameRows } from '../../operators/dataflow/row-operator.ts';
import { isNamedLike } from '../../operators/ratings/rows/column-names.ts';
import { columnNames, fieldOf } from '../../operators/ratings/rows/columns.ts';
import type { ItemNames } from '../../operators/serving/item-names.ts';
import type { Dataset } from '../dataset.ts';

/** The columns of a file with the names of items. */
export interface NameColumns {
  readonly id: string;
  readonly name: string;
  /** The column of genres, if the file has one. */
  readonly genre: string | undefined;
  /**
   * A column that is named like a column of genres, but whose values are not text, so that it is not read.
   */
  readonly unreadGenre?: string;
  /** True if the file has no header, so that columns were chosen by position. */
  readonly byPosition: boolean;
}

/** The given columns, and the model's name for the item column. */
export interface GivenColumns {
  readonly idCol?: string | undefined;
  readonly nameCol?: string | undefined;
  readonly genreCol?: string | undefined;
  readonly itemCol?: string | undefined;
}

type Test = (column: string) => boolean;

/** Tests by which the columns of ids, names and genres are recognised; the most likely names first. */
const idTests = (side: 'user' | 'item'): readonly Test[] => [
  (column) => column === side,
  (column) => isNamedLike(column, side),
  (column) => /^(imdb[ _-]?)?id$/i.test(column),
];
const isName: readonly Test[] = [
  (column) => /^name$/i.test(column),
  (column) => /^title$/i.test(column),
  (column) => /(name|title)$/i.test(column),
];
const isGenre: readonly Test[] = [
  (column) => /^genres?$/i.test(column),
  (column) => /^(category|categories)$/i.test(column),
  (column) => /(genres?|category|categories)$/i.test(column),
];

/** Names that the text reader gives to columns without a header. */
const positional = /^column\d+$|^(user|item|rating|timestamp)$/;

/** Finds the columns of ids, names and genres. Throws DataError that lists the columns if one is missing. */
export function nameColumns(schema: Schema, given: GivenColumns, isText: boolean): NameColumns {
  const { idCol, nameCol, genreCol } = given;
  const columns = schema.fields.map(({ name }) => name);
  requireColumn(schema, idCol, 'idCol');
  requireColumn(schema, nameCol, 'nameCol');
  requireColumn(schema, genreCol, 'genreCol');
  if (isText && hasNoHeader(columns)) {
    const byPosition = idCol === undefined && nameCol === undefined;
    return { id: idCol ?? columns[0], name: nameCol ?? columns[1], genre: genreCol, byPosition };
  }
  const id = idColumn(columns, given);
  if (id === undefined) throw missing(schema, 'there is no column of item ids', 'Name it with idCol');
  const onlyOther = columns.length === 2 ? columns.find((column) => column !== id) : undefined;
  const name = nameCol ?? firstLike(columns, isName, [id, genreCol]) ?? onlyOther;
  if (name === undefined) throw missing(schema, 'there is no column of item names', 'Name it with nameCol');
  const genre = genreCol ?? firstLike(columns, isGenre, [id, name]);
  return { id, name, genre, byPosition: false };
}

/**
 * The column of item ids of a file with attributes. Throws DataError that lists the columns if it is missing.
 */
export function itemIdColumn(
  schema: Schema,
  given: Pick<GivenColumns, 'idCol' | 'itemCol'>,
  file: string,
): string {
  const columns = schema.fields.map(({ name }) => name);
  const id = idColumn(columns, given);
  if (id !== undefined && columns.includes(id)) return id;
  const problem = id === undefined ? 'there is no column of item ids' : `there is no column "${id}"`;
  throw new DataError(`${problem}; there are: ${columnNames(schema)}`, {
    phase: 'read item attributes',
    file,
    advice: 'Name it with idCol',
  });
}

function idColumn(
  columns: readonly string[],
  { idCol, itemCol, nameCol, genreCol }: GivenColumns,
): string | undefined {
  const ofModel = columns.find((column) => column === itemCol);
  return idCol ?? ofModel ?? likelyIdColumn(columns, 'item', [nameCol, genreCol]);
}

/** The column whose name is usual for ids of items or users. */
export function likelyIdColumn(columns: Columns, side: 'user' | 'item', taken: Columns = []) {
  return firstLike(columns, idTests(side), taken);
}

function hasNoHeader(columns: readonly string[]): boolean {
  const [first] = columns;
  const isFirst = first === 'user' || first === 'column1';
  return columns.length >= 2 && isFirst && columns.every((column) => positional.test(column));
}

type Columns = readonly (string | undefined)[];

function firstLike(columns: Columns, tests: readonly Test[], taken: Columns) {
  const free = columns.filter((column) => column !== undefined).filter((column) => !taken.includes(column));
  return tests.map((test) => free.find((column) => test(column))).find((column) => column !== undefined);
}

type ColumnOption = 'idCol' | 'nameCol' | 'genreCol';

function requireColumn(schema: Schema, given: string | undefined, option: ColumnOption): void {
  const columns = schema.fields.map(({ name }) => name);
  if (given === undefined || columns.includes(given)) return;
  const advice = spelled(nearest(given, columns), `Give another ${option}`);
  throw missing(schema, `there is no column "${given}"`, advice);
}

function missing(schema: Schema, problem: string, advice: string): DataError {
  return new DataError(`${problem}; there are: ${columnNames(schema)}`, { phase: 'read item names', advice });
}

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

/** Lists with the items' names in an additional column; unchanged without names. */
export function withNames(lists: Dataset, names: ItemNames | undefined, item: string): Dataset {
  return names === undefined ? lists : lists.pipe(new NameItems(names, item));
}

/**
 * Adds a column `name` after the column of items: utf8, null for an item without a name. The column is called
 * `itemName` if another one is called `name`.
 */
class NameItems extends RowOperator {
  readonly name = 'name-items';
  readonly passesNeeds = true;
  readonly #names: ItemNames;
  readonly #item: string;

  constructor(names: ItemNames, item: string) {
    super();
    this.#names = names;
    this.#item = item;
  }

  describe(): JsonObject {
    return { item: this.#item, names: this.#names.size };
  }

  override outputSchema(input: Schema): Schema {
    fieldOf(input, this.#item);
    const added = new Field(nameColumn(input), new Utf8(), true);
    return new Schema(input.fields.flatMap((field) => (field.name === this.#item ? [field, added] : field)));
  }

  override requiredColumns(wanted?: readonly string[]): readonly string[] | undefined {
    if (wanted === undefined) return undefined;
    const others = wanted.filter((name) => name !== 'name' && name !== 'itemName');
    return [...new Set([...others, this.#item])];
  }

  protected async *batches(input: BatchStream, schema: Schema) {
    const at = input.schema.fields.findIndex(({ name }) => name === this.#item);
    for await (const batch of input) {
      const children = [...batch.data.children];
      children.splice(at + 1, 0, this.#namesOf(batch.data.children[at]));
      yield sameRows(batch, schema, children);
    }
  }

  #namesOf(items: Data): Data {
    const idAt = plainValues(items);
    const names = Array.from({ length: items.length }, (_, row) => this.#names.get(idAt(row) as Id) ?? null);
    return vectorFromArray(names, new Utf8()).data[0];
  }
}

function nameColumn({ fields }: Schema): string {
  return fields.some(({ name }) => name === 'name') ? 'itemName' : 'name';
}
