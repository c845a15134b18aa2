import type { RecordBatch, Schema } from 'apache-arrow';
import { NdjsonSource } from '../../connectors/ndjson/ndjson-source.ts';
import { detectFormat, openSource } from '../../connectors/open-source.ts';
import { TextSource } from '../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { type Checked, checkPredicate } from '../../engine/expressions/check.ts';
import type { Expression } from '../../engine/expressions/expression.ts';
import { print } from '../../engine/expressions/print.ts';
import { selectedRows } from '../../engine/expressions/select-rows.ts';
import { counted, formatCount, shown } from '../../engine/format.ts';
import { batchPositions } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, UNKNOWN_KEY } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { lookupOf } from '../../operators/serving/factor-model.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { datasetOf } from '../dataset.ts';
import { Column } from '../expressions.ts';
import { expr } from '../parse-column.ts';
import type { RunOptions } from '../run-session.ts';
import type { ServedModel } from './build-index.ts';
import { itemIdColumn } from './name-columns.ts';
import { ItemFilter } from './request.ts';

/** Rows of attributes, and the position of each row's item in the model. */
export interface AttributeRows {
  readonly batch: RecordBatch;
  readonly positions: Uint32Array;
}

/** Bytes of masks that are kept, and the least and the largest number of masks. */
const KEPT_BYTES = 64 * 2 ** 20;
const LEAST_KEPT = 4;
const MOST_KEPT = 1000;

/**
 * Attributes of a model's items, such as genres and prices, from which filters are made. The mask of a
 * condition is computed once and kept until many other conditions were used.
 */
export class ItemFilters {
  /** Names and types of the attributes. */
  readonly schema: Schema;
  readonly #keys: KeyColumn;
  readonly #rows: readonly AttributeRows[];
  readonly #made = new Map<string, ItemFilter>();
  readonly #most: number;
  readonly #id: string;

  /** @internal `id`: the column of ids. */
  constructor(keys: KeyColumn, schema: Schema, rows: readonly AttributeRows[], id: string) {
    [this.#keys, this.schema, this.#rows, this.#id] = [keys, schema, rows, id];
    this.#most = Math.max(
      LEAST_KEPT,
      Math.min(MOST_KEPT, Math.floor(KEPT_BYTES / Math.max(1, keyCount(keys)))),
    );
  }

  /**
   * The items for which a condition is true, in SQL or as a column:
   * `genre in ('Drama', 'War') and price < 10`. An item without attributes meets no condition. Throws
   * UsageError for a condition that is not valid.
   */
  where(condition: string | Column): ItemFilter {
    if (typeof condition !== 'string' && !(condition instanceof Column))
      throw new UsageError(`where takes a condition as text or column, got ${shown(condition)}`);
    const key = typeof condition === 'string' ? condition : print(condition.expression);
    const found = this.#made.get(key) ?? this.#make(condition);
    // The entries of a map are in the order of insertion, so the first one is the least recently used.
    this.#made.delete(key);
    this.#made.set(key, found);
    const [oldest] = this.#made.keys();
    if (this.#made.size > this.#most) this.#made.delete(oldest);
    return found;
  }

  /** @internal The attributes of the items of another model. */
  of(keys: KeyColumn): ItemFilters {
    if (keys === this.#keys) return this;
    const lookup = lookupOf(keys);
    const rows = this.#rows.map(({ batch }) => ({
      batch,
      positions: batchPositions(lookup, batch, this.#id),
    }));
    return new ItemFilters(keys, this.schema, rows, this.#id);
  }

  #make(condition: string | Column): ItemFilter {
    const expression: Expression = (typeof condition === 'string' ? expr(condition) : condition).expression;
    const predicate = checkPredicate(expression, this.schema);
    const mask = sharedArray(Uint8Array, keyCount(this.#keys));
    for (const rows of this.#rows) mark(predicate, rows, mask);
    return new ItemFilter(this.#keys, mask);
  }
}

/** Opens a file with a column of ids, which are read as text if `asText`. */
export async function openById(path: string, idOf: (schema: Schema) => string, asText: boolean) {
  const format = await detectFormat([path], 'text');
  const source = await openSource(path, { format });
  const id = idOf(await source.schema());
  // Numbers in a text file may be ids with zeros in front.
  const isLines = source instanceof TextSource || source instanceof NdjsonSource;
  if (!asText || !isLines) return { source, id };
  return { source: await openSource(path, { format, types: { [id]: 'utf8' } }), id };
}

function mark(predicate: Checked, { batch, positions }: AttributeRows, mask: Uint8Array): void {
  let selected: Uint32Array;
  try {
    selected = selectedRows(predicate, batch);
  } catch (error) {
    // A value that does not fit: the condition is at fault, not the stored attributes. The summary names the
    // part of the condition.
    throw error instanceof DataError ? new UsageError(error.summary, { cause: error }) : error;
  }
  for (const row of selected) if (positions[row] !== UNKNOWN_KEY) mask[positions[row]] = 1;
}

export interface ItemFiltersOptions extends RunOptions {
  /** The column of ids. Default: the model's item column, else item, itemId, movieId and similar, or id. */
  readonly idCol?: string;
}

/** See Model.readItemFilters. */
export async function readItemFilters(
  served: ServedModel,
  path: string,
  options: ItemFiltersOptions,
): Promise<ItemFilters> {
  checkOptions('readItemFilters', options, ['idCol', ...runOptionNames], "{ idCol: 'movieId' }");
  if (typeof path !== 'string') throw new UsageError(`readItemFilters takes a path, got ${shown(path)}`);
  const { items } = served.factors;
  const { idCol, ...run } = options;
  const given = { idCol, itemCol: served.columns.item };
  const idOf = (schema: Schema) => itemIdColumn(schema, given, path);
  const { source, id } = await openById(path, idOf, items.type === 'utf8');
  const lookup = lookupOf(items);
  const rows: AttributeRows[] = [];
  let [known, all] = [0, 0];
  const dataset = datasetOf(served.session, source);
  for await (const batch of await dataset.stream(run)) {
    const positions = batchPositions(lookup, batch, id);
    for (const position of positions) if (position !== UNKNOWN_KEY) known++;
    all += batch.numRows;
    rows.push({ batch, positions });
  }
  if (known === 0)
    throw new DataError('no row has the id of an item of the model', {
      phase: 'read item attributes',
      file: path,
      column: id,
    });
  const ofItems = `${formatCount(known)} of ${counted(keyCount(items), 'item')}`;
  const text = `${path} has attributes of ${ofItems}; ${counted(all - known, 'other row')}`;
  if (known < keyCount(items)) options.onEvent?.({ type: 'note', text });
  return new ItemFilters(items, await dataset.schema(), rows, id);
}
