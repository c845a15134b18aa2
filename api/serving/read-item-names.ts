import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import type { FileKind } from '../../connectors/files/format-names.ts';
import { NdjsonSource } from '../../connectors/ndjson/ndjson-source.ts';
import { detectFormat, openSource } from '../../connectors/open-source.ts';
import { TextSource } from '../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { shown } from '../../engine/format.ts';
import { isNullAt, keysFromData, keyTypeOf, refusedIn } from '../../engine/keys/arrow-keys.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { type ItemNameEntry, ItemNames } from '../../operators/serving/item-names.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { type Dataset, datasetOf } from '../dataset.ts';
import type { Model } from '../model.ts';
import type { RunOptions, RunSession } from '../run-session.ts';
import { nameColumns, type NameColumns, noteNames, requireNamesOf } from './name-columns.ts';

export interface ItemNamesOptions extends RunOptions {
  /** The column of ids. Default: the model's item column, else item, itemId, movieId and similar, or id. */
  readonly idCol?: string;
  /** The column of names. Default: name, title, item_name and similar. */
  readonly nameCol?: string;
  /**
   * The column of genres, which colour items in reports. Default: genre, genres, category and similar, or
   * none.
   */
  readonly genreCol?: string;
  /** The model with the items: its ids are compared with the file's; a note counts the differences. */
  readonly model?: Pick<Model, 'columns' | 'itemArrays' | 'itemFactors'>;
  /**
   * The column of item ids in the ratings, needed before there is a model. Default: the item column of the
   * model.
   */
  readonly itemCol?: string;
}

const optionNames = ['idCol', 'nameCol', 'genreCol', 'itemCol', 'model', ...runOptionNames] as const;

/** See Session.readItemNames. */
export async function readItemNames(session: RunSession, path: string, options: ItemNamesOptions) {
  checkOptions('readItemNames', options, optionNames, "{ nameCol: 'title' }");
  if (typeof path !== 'string') throw new UsageError(`readItemNames takes a path, got ${shown(path)}`);
  const { idCol, nameCol, genreCol, model, itemCol = model?.columns.item, signal, onEvent } = options;
  const format = await detectFormat([path], 'text');
  const found = await openSource(path, { format });
  const given = { idCol, nameCol, genreCol, itemCol };
  const isText = found instanceof TextSource;
  const all = await inFile(path, async () => nameColumns(await found.schema(), given, isText));
  const file: OpenedFile = { session, path, format, found, run: { signal, onEvent } };
  const { names, missing, columns } =
    genreCol === undefined ? await withFoundGenres(file, all) : await readColumns(file, all);
  const place = { file: path, column: columns.id };
  const phase = 'read item names';
  if (names.size === 0) throw new DataError('there are no ids of items', { phase, ...place });
  const ids = model && idsOfItems(model);
  if (ids !== undefined) requireNamesOf(names, ids, place);
  noteNames(names, { path, columns, missing, ids }, onEvent);
  return names;
}

interface OpenedFile {
  readonly session: RunSession;
  readonly path: string;
  readonly format: FileKind;
  readonly found: Source;
  readonly run: RunOptions;
}

/**
 * Reads the file. If the genre column was found by its name, it is ignored unless it has texts or whole
 * numbers.
 */
async function withFoundGenres(file: OpenedFile, columns: NameColumns) {
  const { genre } = columns;
  const { found } = file;
  const without = { ...columns, genre: undefined };
  // The type of an NDJSON field is known only after a pass over all values, which a source that can be read
  // once does not allow.
  const isOnce = found instanceof NdjsonSource && !found.replayable;
  if (genre === undefined || isOnce) return readColumns(file, without);
  if (!hasTexts(await found.schema(), genre)) return readColumns(file, { ...without, unreadGenre: genre });
  try {
    return await readColumns(file, columns);
  } catch (error) {
    const isOfGenres = error instanceof DataError && error.details.column === genre;
    if (!isOfGenres || !(found instanceof NdjsonSource)) throw error;
    return readColumns(file, { ...without, unreadGenre: genre });
  }
}

/** The names, the number of rows without an id, and the columns that were read. */
async function readColumns(file: OpenedFile, columns: NameColumns) {
  const source = await withTexts(file, columns);
  const schema = await source.schema();
  const place = { phase: 'read item names', file: file.path };
  requireTexts(schema, columns.name, 'names', { ...place, advice: 'Name another column with nameCol' });
  if (columns.genre !== undefined) {
    requireTexts(schema, columns.genre, 'genres', { ...place, advice: 'Name another column with genreCol' });
  }
  return { ...(await readAll(datasetOf(file.session, source), columns, file.run)), columns };
}

/** The names, and the number of rows without an id. */
async function readAll(rows: Dataset, { id, name, genre }: NameColumns, run: RunOptions) {
  const entries: ItemNameEntry[] = [];
  let missing = 0;
  // A file may use the same column for names and for genres.
  const columns = [...new Set(genre === undefined ? [id, name] : [id, name, genre])];
  for await (const batch of await rows.stream({ ...run, columns })) {
    const [idOf, nameOf] = [textsOf(batch, id), textsOf(batch, name)];
    const genreOf = genre === undefined ? () => undefined : textsOf(batch, genre);
    for (let row = 0; row < batch.numRows; row++) {
      const own = idOf(row);
      if (own === undefined) missing++;
      else entries.push([own, nameOf(row), genreOf(row)]);
    }
  }
  return { names: new ItemNames(entries), missing };
}

/** The item ids as the model stores them, so that they do not depend on the session's option `ids`. */
function idsOfItems({ itemArrays, itemFactors }: Pick<Model, 'itemArrays' | 'itemFactors'>) {
  const values: unknown = itemFactors.data.children[0].values;
  return values instanceof Int32Array || values instanceof BigInt64Array ? values : itemArrays.ids;
}

type Details = ConstructorParameters<typeof DataError>[1];

function requireTexts(schema: Schema, column: string, values: 'names' | 'genres', details: Details): void {
  if (hasTexts(schema, column)) return;
  const type = schema.fields.find(({ name }) => name === column)?.type;
  throw new DataError(`${values} must be text, but the type is ${String(type)}`, { ...details, column });
}

/** True for a column of texts or of whole numbers. */
function hasTexts({ fields }: Schema, column: string): boolean {
  const type = fields.find(({ name }) => name === column)?.type;
  const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isDictionary(type);
  return isText || DataType.isInt(type);
}

/** Adds the file's name to errors about columns. */
async function inFile<T>(file: string, find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof DataError) || error.details.file !== undefined) throw error;
    throw new DataError(error.summary, { ...error.details, file });
  }
}

/**
 * Reads ids and names as text, as they are written: 007 is not 7, and the title 1984 is not a number. A pipe
 * keeps its detected types, since it can be read only once.
 */
async function withTexts(
  { path, format, found }: OpenedFile,
  { id, name, genre }: NameColumns,
): Promise<Source> {
  const isLines = found instanceof TextSource || found instanceof NdjsonSource;
  if (!isLines || !found.replayable) return found;
  const genres = genre === undefined ? {} : { [genre]: 'utf8' as const };
  return openSource(path, { format, types: { [id]: 'utf8', [name]: 'utf8', ...genres } });
}

/** The text of a row's value; undefined for null. */
function textsOf(batch: RecordBatch, column: string): (row: number) => string | undefined {
  const at = batch.schema.fields.findIndex(({ name }) => name === column);
  const data: Data = batch.data.children[at];
  const keys = keysFromData(data, keyTypeOf(data.type, column), refusedIn(batch, column));
  const nullable = data.nullCount > 0 || data.dictionary !== undefined;
  return (row) => (nullable && isNullAt(data, row) ? undefined : keyText(keys, row));
}
