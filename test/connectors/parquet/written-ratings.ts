/** Ratings written as Parquet to a folder of the test file. */
import { RecordBatch, tableFromArrays } from 'apache-arrow';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ParquetSink } from '../../../connectors/parquet/parquet-sink.ts';
import { context, streamOf } from './parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const folder = temporaryFolder();
export const path = (name: string) => join(folder, name);
export const leftovers = () => readdirSync(folder).filter((name) => name.startsWith('.'));

export function ratings(rows: number, from = 0): RecordBatch {
  const index = Array.from({ length: rows }, (_, i) => i + from);
  return tableFromArrays({
    user: Int32Array.from(index, (i) => i % 97),
    item: Int32Array.from(index),
    rating: Float32Array.from(index, (i) => (i % 10) / 2),
  }).batches[0];
}

export async function write(
  name: string,
  batches: readonly RecordBatch[],
  options: ConstructorParameters<typeof ParquetSink>[1] = {},
) {
  return new ParquetSink(path(name), options).consume(streamOf(batches[0].schema, batches), context());
}
