import type { Schema } from 'apache-arrow';
import { DataError } from '../../engine/errors.ts';
import { nearest, spelled } from '../../engine/nearest.ts';
import { isNamedLike } from '../../operators/ratings/rows/column-names.ts';
import { columnNames } from '../../operators/ratings/rows/columns.ts';

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
const isId: readonly Test[] = [
  (column) => column === 'item',
  (column) => isNamedLike(column, 'item'),
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
  return idCol ?? ofModel ?? firstLike(columns, isId, [nameCol, genreCol]);
}

function hasNoHeader(columns: readonly string[]): boolean {
  const [first] = columns;
  const isFirst = first === 'user' || first === 'column1';
  return columns.length >= 2 && isFirst && columns.every((column) => positional.test(column));
}

type Columns = readonly (string | undefined)[];

function firstLike(columns: readonly string[], tests: readonly Test[], taken: Columns) {
  const free = columns.filter((column) => !taken.includes(column));
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
