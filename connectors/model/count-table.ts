import { DataType, Field, Int32, Int64, makeData, RecordBatch, Schema, Struct, Utf8 } from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, UsageError } from '../../engine/errors.ts';
import type { Codec } from '../parquet/backend.ts';
import { parquetBackend } from '../parquet/backends.ts';
import { ParquetSource } from '../parquet/parquet-source.ts';
import { partName } from '../parquet/part-names.ts';
import { type IdColumn, idCount, idData, idTypeOf, joinIds, sameIds } from './id-column.ts';

const BATCH_ROWS = 1 << 20;

/** Writes <folder>/part-00000.parquet: id, count: int32, in the order of the ids. The same counts give the same bytes. */
export async function writeCounts(folder: string, ids: IdColumn, counts: Uint32Array, codec: Codec): Promise<void> {
  const rows = idCount(ids);
  if (counts.length !== rows) throw new UsageError(`there are ${counts.length} counts of ratings for ${rows} items`, { phase: 'save' });
  const idType = { int32: new Int32(), int64: new Int64(), utf8: new Utf8() }[ids.type];
  const schema = new Schema([new Field('id', idType, false), new Field('count', new Int32(), false)]);
  await mkdir(folder);
  const writer = await (await parquetBackend()).create(join(folder, partName(0)), schema, { codec, rowGroupSize: BATCH_ROWS, dictionary: false });
  try {
    for (let from = 0; from < rows || from === 0; from += BATCH_ROWS) {
      const to = Math.min(rows, from + BATCH_ROWS);
      const count = makeData({ type: new Int32(), length: to - from, nullCount: 0, data: Int32Array.from(counts.subarray(from, to)) });
      await writer.write(new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length: to - from, nullCount: 0, children: [idData(ids, from, to), count] })));
    }
    await writer.close();
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

/** Reads such a folder into shared memory; undefined where there is none. Throws DataError unless its ids are those given, in their order. */
export async function readCounts(folder: string, ids: IdColumn): Promise<Uint32Array | undefined> {
  if ((await stat(folder).catch(() => undefined)) === undefined) return undefined;
  const source = new ParquetSource(folder, { batchSize: BATCH_ROWS });
  const schema = await source.schema();
  const [id, count] = ['id', 'count'].map((name) => schema.fields.find((field) => field.name === name));
  if (id === undefined || idTypeOf(id.type) !== ids.type || count === undefined || !DataType.isInt(count.type) || count.type.bitWidth !== 32) {
    throw new DataError(`the columns are not those of counts: need id: ${ids.type} and count: int32, have ${schema.fields.map((field) => `${field.name}: ${String(field.type)}`).join(', ')}`, { phase: 'load', file: folder });
  }
  const rows = idCount(ids);
  const counts = new Uint32Array(new SharedArrayBuffer(4 * rows));
  const chunks: Data[] = [];
  let done = 0;
  for await (const batch of await source.execute({ signal: new AbortController().signal }, ['id', 'count'])) {
    const at = (name: string) => batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)];
    if (at('id').nullCount + at('count').nullCount > 0) throw new DataError('an id or a count is null', { phase: 'load', file: folder });
    if (done + batch.numRows <= rows) counts.set((at('count').values as Int32Array).subarray(0, batch.numRows), done);
    chunks.push(at('id'));
    done += batch.numRows;
  }
  if (done !== rows || !sameIds(joinIds(ids.type, chunks), ids)) throw new DataError(`the ids of the ${done} counts are not those of the ${rows} items`, { phase: 'load', file: folder });
  return counts;
}
