import { type Data, DataType, type RecordBatch, type Schema } from 'apache-arrow';
import { NdjsonSource } from '../../connectors/ndjson/ndjson-source.ts';
import { detectFormat } from '../../connectors/detect-format.ts';
import type { FileKind } from '../../connectors/files/format-names.ts';
import { openSource } from '../../connectors/open-source.ts';
import { TextSource } from '../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { isNullAt, keysFromData, keyTypeOf, refusedIn } from '../../engine/keys/arrow-keys.ts';
import type { Id } from '../../engine/keys/find-id.ts';
import { keyText } from '../../engine/keys/key-column.ts';
import type { Source } from '../../engine/stream/operator.ts';
import { ItemNames } from '../../operators/serving/item-names.ts';
import { checkOptions, runOptionNames, shown } from '../check-options.ts';
import type { Dataset } from '../dataset.ts';
import type { Model } from '../model.ts';
import type { RunOptions, Session } from '../session.ts';
import { nameColumns, type NameColumns } from './name-columns.ts';
import { noteNames, requireNamesOf } from './note-names.ts';

export interface ItemNamesOptions extends RunOptions {
  /** The column of ids. Default: the model's item column, else item, itemId, movieId and the like, or id. */
  readonly idCol?: string;
  /** The column of names. Default: name, title, item_name and the like. */
  readonly nameCol?: string;
  /** The model whose items are named: its ids are compared with the file's; a note counts the differences. */
  readonly model?: Pick<Model, 'columns' | 'itemArrays' | 'itemFactors'>;
  /** The column of item ids in the ratings, needed before there is a model. Default: the item column of the model. */
  readonly itemCol?: string;
}

const optionNames = ['idCol', 'nameCol', 'itemCol', 'model', ...runOptionNames] as const;

/** See Session.readItemNames. */
export async function readItemNames(session: Session, path: string, options: ItemNamesOptions) {
  checkOptions('readItemNames', options, optionNames, "{ nameCol: 'title' }");
  if (typeof path !== 'string') throw new UsageError(`readItemNames takes a path, got ${shown(path)}`);
  const { idCol, nameCol, model, itemCol = model?.columns.item, signal, onEvent } = options;
  const format = await detectFormat([path], 'text');
  const found = await openSource(path, { format });
  const given = { idCol, nameCol, itemCol };
  const isText = found instanceof TextSource;
  const columns = await inFile(path, async () => nameColumns(await found.schema(), given, isText));
  const source = await withTexts({ path, format }, found, columns);
  requireTextNames(await source.schema(), columns.name, path);
  const { names, missing } = await readAll(session.source(source), columns, { signal, onEvent });
  const place = { file: path, column: columns.id };
  const phase = 'read item names';
  if (names.size === 0) throw new DataError('there are no ids of items', { phase, ...place });
  const ids = model && idsOfItems(model);
  if (ids !== undefined) requireNamesOf(names, ids, place);
  noteNames(names, { path, columns, missing, ids }, onEvent);
  return names;
}

/** The names, and the number of rows without an id. */
async function readAll(rows: Dataset, { id, name }: NameColumns, run: RunOptions) {
  const entries: [Id, string | undefined][] = [];
  let missing = 0;
  for await (const batch of await rows.stream({ ...run, columns: [id, name] })) {
    const [idOf, nameOf] = [textsOf(batch, id), textsOf(batch, name)];
    for (let row = 0; row < batch.numRows; row++) {
      const own = idOf(row);
      if (own === undefined) missing++;
      else entries.push([own, nameOf(row)]);
    }
  }
  return { names: new ItemNames(entries), missing };
}

/** The ids as the model stores them; the form of its answers does not matter. */
function idsOfItems({ itemArrays, itemFactors }: Pick<Model, 'itemArrays' | 'itemFactors'>) {
  const values: unknown = itemFactors.data.children[0].values;
  return values instanceof Int32Array || values instanceof BigInt64Array ? values : itemArrays.ids;
}

function requireTextNames({ fields }: Schema, name: string, file: string): void {
  const type = fields.find((field) => field.name === name)?.type;
  const isText = DataType.isUtf8(type) || DataType.isLargeUtf8(type) || DataType.isDictionary(type);
  if (isText || DataType.isInt(type)) return;
  const place = { phase: 'read item names', file, column: name };
  const advice = 'Name another column with nameCol';
  throw new DataError(`names must be text, but the type is ${String(type)}`, { ...place, advice });
}

/** Errors of the columns name the file. */
async function inFile<T>(file: string, find: () => Promise<T>): Promise<T> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof DataError) || error.details.file !== undefined) throw error;
    throw new DataError(error.summary, { ...error.details, file });
  }
}

interface OpenedFile {
  readonly path: string;
  readonly format: FileKind;
}

/**
 * Ids and names of text stay as they are written: 007 is no 7, and the title 1984 no number. A pipe can be
 * read only once.
 */
async function withTexts({ path, format }: OpenedFile, found: Source, columns: NameColumns): Promise<Source> {
  const { id, name } = columns;
  const isLines = found instanceof TextSource || found instanceof NdjsonSource;
  if (!isLines || !found.replayable) return found;
  return openSource(path, { format, types: { [id]: 'utf8', [name]: 'utf8' } });
}

/** The text of a column's values; undefined for nulls. */
function textsOf(batch: RecordBatch, column: string): (row: number) => string | undefined {
  const at = batch.schema.fields.findIndex(({ name }) => name === column);
  const data: Data = batch.data.children[at];
  const keys = keysFromData(data, keyTypeOf(data.type, column), refusedIn(batch, column));
  const nullable = data.nullCount > 0 || data.dictionary !== undefined;
  return (row) => (nullable && isNullAt(data, row) ? undefined : keyText(keys, row));
}
