/** Tables written as Arrow files and streams, for the tests of the connector. */
import {
  Field,
  Float32,
  Int32,
  makeData,
  RecordBatch,
  RecordBatchFileWriter,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import type { DataType } from 'apache-arrow';
import { ArrowSink } from '../../../connectors/arrow/arrow-sink.ts';
import type { ArrowSinkOptions } from '../../../connectors/arrow/arrow-sink.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { context } from '../parquet/parquet-testing.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export const folder = temporaryFolder();

export function table(
  columns: readonly (readonly [name: string, type: DataType, values: readonly unknown[]])[],
): RecordBatch {
  const children = columns.map(
    ([, type, values]) =>
      vectorFromArray(values, type).data[0] ?? makeData({ type: type as Int32, length: 0 }),
  );
  const schema = new Schema(columns.map(([name], index) => new Field(name, children[index].type, true)));
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: columns[0][2].length, nullCount: 0, children }),
  );
}

export const ratings = (rows: number, from = 0) =>
  table([
    ['user', new Int32(), Array.from({ length: rows }, (_, i) => from + i)],
    ['item', new Utf8(), Array.from({ length: rows }, (_, i) => (i % 5 === 0 ? null : `item ${from + i}`))],
    ['rating', new Float32(), Array.from({ length: rows }, (_, i) => (i % 10) / 2)],
  ]);

export function write(file: string, batches: readonly RecordBatch[], options: ArrowSinkOptions = {}) {
  const all = (async function* () {
    yield* batches;
  })();
  return new ArrowSink(file, { overwrite: true, ...options }).consume(
    batchStream(batches[0].schema, all),
    context(),
  );
}

/** Batches in the encoding of another program, by apache-arrow's own writer. */
export function encode(
  batches: readonly RecordBatch[],
  format: 'file' | 'stream' = 'stream',
  options: ConstructorParameters<typeof RecordBatchStreamWriter>[0] = undefined,
): Uint8Array {
  const writer =
    format === 'file' ? new RecordBatchFileWriter(options) : new RecordBatchStreamWriter(options);
  for (const batch of batches) writer.write(batch);
  return writer.finish().toUint8Array(true);
}
