/** Rows are known from row groups that a task has encoded, whatever metadata their schema has. */
import { join } from 'node:path';
import { RecordBatch, Schema, Table, tableFromArrays, tableToIPC } from 'apache-arrow';
import { expect, test } from 'vitest';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { context, duckRows, streamOf } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

test('a schema with an entry "rows" of its own', async () => {
  const path = join(temporaryFolder(), 'noted.parquet');
  const { schema, data } = tableFromArrays({ n: Int32Array.of(1, 2, 3) }).batches[0];
  // Other programs keep a schema in such an entry, as text.
  const kept = Buffer.from(tableToIPC(new Table(schema))).toString('base64');
  const noted = new RecordBatch(new Schema(schema.fields, new Map([['rows', kept]])), data);
  await new ParquetSink(path).consume(streamOf(noted.schema, [noted]), context());
  expect(await duckRows(`SELECT count(*)::INT AS n FROM '${path}'`)).toEqual([[3]]);
});
