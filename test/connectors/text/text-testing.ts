import { Field, makeData, RecordBatch, Schema, Struct, vectorFromArray } from 'apache-arrow';
import type { DataType, Int32 } from 'apache-arrow';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { TextSink } from '../../../connectors/text/text-sink.ts';
import type { TextSinkOptions } from '../../../connectors/text/text-sink.ts';
import { TextSource } from '../../../connectors/text/text-source.ts';
import type { TextSourceOptions } from '../../../connectors/text/text-source.ts';
import { arrowRows, collect, context } from '../parquet/parquet-testing.ts';

export interface ReadTable {
  /** "name:Type" of every column. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

export async function readTable(source: Source, columns?: readonly string[]): Promise<ReadTable> {
  const stream = await source.execute(context() as unknown as Parameters<Source['execute']>[0], columns);
  const batches = await collect(stream);
  return {
    columns: stream.schema.fields.map(({ name, type }) => `${name}:${String(type)}`),
    rows: arrowRows(batches),
  };
}

/** A batch of nullable columns. */
export function table(
  columns: readonly (readonly [name: string, type: DataType, values: readonly unknown[]])[],
): RecordBatch {
  const schema = new Schema(columns.map(([name, type]) => new Field(name, type, true)));
  const children = columns.map(
    ([, type, values]) =>
      vectorFromArray(values, type).data[0] ?? makeData({ type: type as Int32, length: 0 }),
  );
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), length: columns[0][2].length, nullCount: 0, children }),
  );
}

let written = 0;

/** Reads a text as the contents of a file. */
export function readText(
  folder: string,
  content: string | Uint8Array,
  options: TextSourceOptions = {},
  name = `${written++}.csv`,
): Promise<ReadTable> {
  const file = join(folder, name);
  writeFileSync(file, content);
  return readTable(new TextSource(file, options));
}

export function writeText(
  file: string,
  schema: Schema,
  batches: readonly RecordBatch[],
  options: TextSinkOptions = {},
) {
  const all = (async function* () {
    yield* batches;
  })();
  return new TextSink(file, { overwrite: true, ...options }).consume(batchStream(schema, all), context());
}
