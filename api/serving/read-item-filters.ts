import { NdjsonSource } from '../../connectors/ndjson/ndjson-source.ts';
import { detectFormat } from '../../connectors/detect-format.ts';
import { openSource } from '../../connectors/open-source.ts';
import { TextSource } from '../../connectors/text/text-source.ts';
import { DataError, UsageError } from '../../engine/errors.ts';
import { counted, formatCount } from '../../engine/format.ts';
import { batchPositions } from '../../engine/keys/batch-positions.ts';
import { keyCount } from '../../engine/keys/key-column.ts';
import { UNKNOWN_KEY } from '../../engine/keys/tables/key-table.ts';
import { shown } from '../../engine/shown.ts';
import { lookupOf } from '../../operators/serving/factor-model.ts';
import { checkOptions, runOptionNames } from '../check-options.ts';
import { datasetOf } from '../dataset.ts';
import type { RunOptions } from '../run-session.ts';
import { type AttributeRows, ItemFilters } from './item-filters.ts';
import { itemIdColumn } from './name-columns.ts';
import type { ServedModel } from './served-model.ts';

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
  const format = await detectFormat([path], 'text');
  let source = await openSource(path, { format });
  const schema = await source.schema();
  const id = itemIdColumn(schema, { idCol, itemCol: served.columns.item }, path);
  // Numbers in a text file may be ids with zeros in front, which a model of text ids has.
  const isLines = source instanceof TextSource || source instanceof NdjsonSource;
  if (isLines && items.type === 'utf8') source = await openSource(path, { format, types: { [id]: 'utf8' } });
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
  return new ItemFilters(items, await dataset.schema(), rows);
}
