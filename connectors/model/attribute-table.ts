import {
  Field,
  Float32,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { join } from 'node:path';
import { DataError } from '../../engine/errors.ts';
import { noEvents } from '../../engine/events.ts';
import { counted } from '../../engine/format.ts';
import { concatKeys, keysFromData } from '../../engine/keys/arrow-keys.ts';
import { type KeyColumn, keyCount, keyText } from '../../engine/keys/key-column.ts';
import { sharedArray } from '../../engine/partition.ts';
import { batchStream } from '../../engine/stream/stream.ts';
import type { WritingContext } from '../output/checked-sink.ts';
import { ParquetSink } from '../parquet/parquet-sink.ts';
import { ParquetSource } from '../parquet/parquet-source.ts';
import type { StoredEncoding } from './decode-metadata.ts';
import { columnBatches, copyFeatures } from './factor-table.ts';

/** The sides of a model, and the folders with the attributes of each. */
export const attributeFolders = { user: 'userAttributes', item: 'itemAttributes' } as const;

export type AttributeSide = keyof typeof attributeFolders;

/** The attributes of a side: how values become features (see AttributeEncoding), and their coefficients. */
export interface StoredAttributes {
  /** Stored in the metadata. */
  readonly encoding: StoredEncoding;
  /** The value of each feature. */
  readonly values: KeyColumn & { readonly type: 'utf8' };
  readonly weights: Float32Array;
  /** Row-major, features x rank of the factors. */
  readonly coefficients: Float32Array;
}

/** Numbers of a batch, which is also a row group. */
const BATCH_FLOATS = 1 << 22;

const schema = new Schema([
  new Field('column', new Utf8(), false),
  new Field('value', new Utf8(), false),
  new Field('weight', new Float32(), false),
  new Field('coefficients', new List(new Field('element', new Float32(), false)), false),
]);

/**
 * Attributes as rows {column, value, weight, coefficients: list of float32}, one for each feature in the order
 * of their numbers. The column of feature 0, the constant, is empty. `step`: rows of a batch.
 */
export function* attributeBatches(
  attributes: StoredAttributes,
  step = Math.max(1, Math.floor((BATCH_FLOATS * attributes.weights.length) / attributes.coefficients.length)),
): Generator<RecordBatch> {
  const { encoding, values, weights, coefficients } = attributes;
  const features = keyCount(values);
  const rank = coefficients.length / features;
  let column = -1;
  const columnOf = (feature: number) => {
    while (column + 1 < encoding.columns.length && encoding.columns[column + 1].first <= feature) column++;
    return column < 0 ? '' : encoding.columns[column].name;
  };
  for (let from = 0; from < features; from += step) {
    const length = Math.min(step, features - from);
    const rows = Array.from({ length }, (_, row) => from + row);
    const list = makeData({
      type: schema.fields[3].type as List,
      length,
      nullCount: 0,
      valueOffsets: Int32Array.from({ length: length + 1 }, (_, row) => row * rank),
      child: makeData({
        type: new Float32(),
        length: length * rank,
        data: coefficients.subarray(from * rank, (from + length) * rank),
      }),
    });
    const children = [
      vectorFromArray(rows.map(columnOf), new Utf8()).data[0],
      vectorFromArray(
        rows.map((feature) => keyText(values, feature)),
        new Utf8(),
      ).data[0],
      makeData({ type: new Float32(), length, data: weights.subarray(from, from + length) }),
      list,
    ];
    yield new RecordBatch(
      schema,
      makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }),
    );
  }
}

/** Writes the rows of attributeBatches into the folder of a model. */
export async function writeAttributes(
  directory: string,
  side: AttributeSide,
  attributes: StoredAttributes,
  ctx: Omit<WritingContext, 'events'>,
): Promise<void> {
  async function* batches() {
    yield* attributeBatches(attributes);
  }
  const sink = new ParquetSink(join(directory, attributeFolders[side]));
  await sink.consume(batchStream(schema, batches()), { ...ctx, events: noEvents });
}

/**
 * Reads what `writeAttributes` wrote. Throws DataError that names the folder for missing or foreign files, and
 * for other features than the metadata say.
 */
export async function readAttributes(
  directory: string,
  side: AttributeSide,
  encoding: StoredEncoding,
  rank: number,
): Promise<StoredAttributes> {
  const folder = join(directory, attributeFolders[side]);
  const features = encoding.columns.reduce((sum, column) => sum + column.features, 1);
  const source = new ParquetSource(folder, { batchSize: Math.max(1, Math.floor(BATCH_FLOATS / rank)) });
  const { fields } = await source.schema();
  const { rows } = await source.statistics({ signal: new AbortController().signal });
  const isTable = schema.fields.every((field, at) => String(fields[at]?.type) === String(field.type));
  if (!isTable || rows !== features)
    throw new DataError(
      `these are not the attributes of the model: ${counted(rows, 'row')} of ` +
        `${fields.map(({ name, type }) => `${name}: ${String(type)}`).join(', ')}, and the metadata say ${counted(features, 'feature')}`,
      { phase: 'load', file: folder, advice: 'Copy the whole model again' },
    );
  const values: KeyColumn[] = [];
  for await (const { column } of columnBatches(source, 'value')) values.push(keysFromData(column, 'utf8'));
  const weights = sharedArray(Float32Array, features);
  let done = 0;
  for await (const { column } of columnBatches(source, 'weight')) {
    weights.set((column.values as Float32Array).subarray(0, column.length), done);
    done += column.length;
  }
  const coefficients = sharedArray(Float32Array, features * rank);
  done = 0;
  for await (const { column, problem } of columnBatches(source, 'coefficients')) {
    copyFeatures(column, rank, coefficients, done * rank, problem);
    done += column.length;
  }
  return {
    encoding,
    values: concatKeys('utf8', values) as StoredAttributes['values'],
    weights,
    coefficients,
  };
}
