import {
  DataType,
  Field,
  FixedSizeList,
  Float16,
  Float32,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  tableFromIPC,
  Utf8,
} from 'apache-arrow';
import type { Data } from 'apache-arrow';
import { RowStream } from '../../engine/stream/ipc-bytes.ts';
import { DataError } from '../../engine/errors.ts';
import { numbersOf } from '../../engine/numbers/half.ts';
import { type IdColumn, idCount, idData, idTypeOf, joinIds } from './id-column.ts';

/**
 * Rows of factors as a complete Arrow IPC stream {id, features: list<float32>}, or for bits of float16 {id,
 * features: fixed-size list<float16>}.
 */
export interface FactorFrame {
  /** Position of the first row. */
  readonly first: number;
  readonly rows: number;
  /** Valid until the next frame is requested. */
  readonly bytes: Uint8Array;
}

/** Most bytes of factors in a frame. */
const FRAME_BYTES = 15 << 20;

/** Most rows of a frame. `bytes`: of a factor. */
export function frameRows(rank: number, bytes = 4): number {
  return Math.max(1, Math.floor(FRAME_BYTES / (bytes * rank + 12)));
}

/**
 * Splits the rows of a side into frames of at most 16 MiB. A side without rows is one frame without rows.
 * `factors`: rows x rank, as numbers or as bits of float16.
 */
export function* factorFrames(
  ids: IdColumn,
  factors: Float32Array | Uint16Array,
  rank: number,
): Generator<FactorFrame> {
  const idType = { int32: new Int32(), int64: new Int64(), utf8: new Utf8() }[ids.type];
  const features =
    factors instanceof Uint16Array
      ? new FixedSizeList(rank, new Field('element', new Float16(), false))
      : new List(new Field('element', new Float32(), false));
  const schema = new Schema([new Field('id', idType, false), new Field('features', features, false)]);
  const rows = idCount(ids);
  const most = frameRows(rank, factors.BYTES_PER_ELEMENT);
  for (let first = 0; first === 0 || first < rows; first += most) {
    const to = Math.min(rows, first + most);
    const frame = new RowStream(schema, true);
    frame.add(factorBatch(schema, idData(ids, first, to), factors.subarray(first * rank, to * rank), rank));
    yield { first, rows: to - first, bytes: frame.take() };
    frame.giveBack();
  }
}

function factorBatch(
  schema: Schema,
  id: Data,
  values: Float32Array | Uint16Array,
  rank: number,
): RecordBatch {
  const length = id.length;
  const shape = { length, nullCount: 0 };
  const features =
    values instanceof Uint16Array
      ? makeData({
          type: schema.fields[1].type as FixedSizeList<Float16>,
          ...shape,
          child: makeData({ type: new Float16(), length: values.length, nullCount: 0, data: values }),
        })
      : makeData({
          type: schema.fields[1].type as List<Float32>,
          ...shape,
          valueOffsets: Int32Array.from({ length: length + 1 }, (_, row) => row * rank),
          child: makeData({ type: new Float32(), length: values.length, nullCount: 0, data: values }),
        });
  return new RecordBatch(
    schema,
    makeData({ type: new Struct(schema.fields), ...shape, children: [id, features] }),
  );
}

/**
 * Ids and row-major factors of a frame, of one in float16 their bits. Both may be views of `bytes`. Throws
 * DataError for bytes that are not a frame of this rank.
 */
export function readFactorFrame(
  bytes: Uint8Array,
  rank: number,
): { readonly ids: IdColumn; readonly factors: Float32Array | Uint16Array } {
  const fault = (summary: string) =>
    new DataError(`the factors cannot be used: ${summary}`, { phase: 'read', file: 'the feed' });
  let batches: readonly RecordBatch[];
  try {
    ({ batches } = tableFromIPC(bytes));
  } catch (error) {
    throw fault(error instanceof Error ? error.message : String(error));
  }
  const parts = batches
    .filter(({ numRows }) => numRows > 0)
    .map((batch) => ['id', 'features'].map((name) => columnOf(batch, name)));
  const type = parts.length === 0 ? 'int32' : parts[0][0] && idTypeOf(parts[0][0].type);
  if (
    type === undefined ||
    parts.some(([id, features]) => id === undefined || id.nullCount > 0 || features === undefined)
  )
    throw fault('the columns are not id and features');
  const values = parts.map(([, features]) => valuesOf(features as Data, rank));
  const wrong = values.find((one) => typeof one === 'string');
  if (wrong !== undefined) throw fault(wrong as string);
  return {
    ids: joinIds(
      type,
      parts.map(([id]) => id as Data),
    ),
    factors: joinFactors(values as (Float32Array | Uint16Array)[]),
  };
}

function joinFactors(parts: readonly (Float32Array | Uint16Array)[]): Float32Array | Uint16Array {
  if (parts.length === 1) return parts[0];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const isHalf = parts.length > 0 && parts.every((part) => part instanceof Uint16Array);
  const factors = isHalf ? new Uint16Array(length) : new Float32Array(length);
  let at = 0;
  for (const part of parts) {
    factors.set(isHalf ? part : numbersOf(part), at);
    at += part.length;
  }
  return factors;
}

function columnOf(batch: RecordBatch, name: string): Data | undefined {
  return batch.data.children[batch.schema.fields.findIndex((field) => field.name === name)] as
    | Data
    | undefined;
}

/** The values of a column of vectors; if it is invalid, a description of the fault. */
function valuesOf(features: Data, rank: number): Float32Array | Uint16Array | string {
  const { type, valueOffsets, length } = features;
  const isHalf = isListOf(features, 0);
  if (!isHalf && !isListOf(features, 1)) return `features are ${String(type)}, need a list of float`;
  const { values } = features.children[0];
  const numbers = (from: number, to: number) => (values as Float32Array | Uint16Array).subarray(from, to);
  if (DataType.isFixedSizeList(type))
    return type.listSize === rank
      ? numbers(0, length * rank)
      : `vectors have ${type.listSize} values, and the rank is ${rank}`;
  for (let row = 0; row < length; row++)
    if (valueOffsets[row + 1] - valueOffsets[row] !== rank)
      return `a vector has ${valueOffsets[row + 1] - valueOffsets[row]} values, and the rank is ${rank}`;
  return numbers(valueOffsets[0], valueOffsets[length]);
}

/** True for lists of floats. `precision`: Arrow's, 0 for float16, 1 for float32. */
function isListOf({ type, children }: Data, precision: number): boolean {
  if (!DataType.isList(type) && !DataType.isFixedSizeList(type)) return false;
  const [{ type: element }] = children;
  return DataType.isFloat(element) && element.precision === precision;
}
