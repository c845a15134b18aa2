import { type Data, makeData, RecordBatch, type Schema, Struct, type TypeMap } from 'apache-arrow';
import { joinData } from '../stream/join-data.ts';
import { takeData } from '../stream/take-data.ts';
import { placeData } from './place-data.ts';
import { type SortKey, SortKeys } from './sort-keys.ts';
import { positionsOf, sortInBands } from './sort-rows.ts';

/** Most rows of a batch of the result. */
const BATCH_ROWS = 1 << 16;

/** A column, and its row numbers in sorted order. */
interface OrderedColumn {
  readonly data: Data;
  readonly positions: Uint32Array;
}

/**
 * The rows of batches in stable sorted order, in batches of 65,536 rows. All rows are in memory twice,
 * except that `batches` is emptied, so the given batches may be freed meanwhile. `most`: return only this
 * number of first rows.
 */
export function* sortedBatches(
  schema: Schema,
  batches: RecordBatch[],
  keys: readonly SortKey[],
  most = Infinity,
): Generator<RecordBatch> {
  const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  if (rows === 0) return;
  const columns = orderedColumns(schema, batches, keys);
  const type = new Struct<TypeMap>(schema.fields);
  const end = Math.min(rows, most);
  for (let from = 0; from < end; from += BATCH_ROWS) {
    const to = Math.min(from + BATCH_ROWS, end);
    const children = columns.map(({ data, positions }) => takeData(data, positions.subarray(from, to)));
    yield new RecordBatch(schema, makeData({ type, length: to - from, nullCount: 0, children }));
  }
}

function orderedColumns(schema: Schema, batches: RecordBatch[], keys: readonly SortKey[]): OrderedColumn[] {
  const chunks = schema.fields.map((_, i) => batches.map(({ data }) => data.children[i]));
  const rows = batches.reduce((sum, { numRows }) => sum + numRows, 0);
  batches.length = 0;
  const sorted = sortInBands(new SortKeys(schema, keys).ofChunks(chunks, rows));
  let positions: Uint32Array | undefined;
  return chunks.map((own) => {
    const placed = placeData(own, sorted.bands);
    const data = placed ?? joinData(own[0].type, own);
    own.length = 0;
    if (placed !== undefined) return { data, positions: sorted.places };
    return { data, positions: (positions ??= positionsOf(sorted)) };
  });
}
