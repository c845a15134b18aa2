import {
  Data,
  DataType,
  type Field,
  RecordBatchReader,
  DateDay,
  DateUnit,
  IntervalUnit,
  Schema,
  TimeMillisecond,
  Timestamp,
  TimeUnit,
} from 'apache-arrow';
import type { Compression } from 'parquet-wasm/node';
import { DataError, FactorFlowError, UsageError } from '../../../engine/errors.ts';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';
import { openIpc } from '../../../engine/stream/read-ipc.ts';
import { batchOf } from '../../../engine/stream/whole-data.ts';
import { isUuidField, mapInnermost } from '../../../engine/values/value-texts.ts';
import { messageOf } from '../../files/file-problem.ts';
import { joinBytes } from '../../files/stored-bytes.ts';
import type { Encoding } from '../../formats.ts';
import type { Codec } from '../backend.ts';
import { encodeFooter, footerIn, integerIn, structsIn, thrift } from '../write/thrift.ts';
import { WasmInstance } from './wasm-instance.ts';

/** Parquet's numbers of codecs. 'lz4' is LZ4_RAW, which every reader supports. */
const compression = {
  uncompressed: 0,
  snappy: 1,
  gzip: 2,
  brotli: 3,
  zstd: 5,
  lz4: 6,
} as const satisfies Record<Codec, Compression>;

/** Settings of the encoder of a row group. */
type RowGroupEncoding = Encoding & { readonly codec: Codec; readonly dictionary: boolean };

/** The caller has already cut the rows into groups, and the encoder must not cut them further. */
const MOST_ROWS = 2 ** 31 - 1;

/**
 * Encodes the rows of an Arrow IPC stream as a Parquet file of one row group; of none if there are no rows.
 */
export function encodeRowGroup(stream: Uint8Array, encoding: Encoding): Uint8Array {
  const { codec, dictionary, file } = encoding as RowGroupEncoding;
  const rows = storableRows(stream, file);
  using instance = WasmInstance.take();
  const { wasm } = instance;
  try {
    return instance.guardSync(() => {
      const properties = new wasm.WriterPropertiesBuilder()
        .setCompression(compression[codec])
        .setMaxRowGroupSize(MOST_ROWS)
        .setDictionaryEnabled(dictionary);
      const plain = dictionary && codec !== 'uncompressed' ? repeatingColumns(rows) : [];
      const built = plain.reduce((all, name) => all.setColumnDictionaryEnabled(name, false), properties);
      return withUuids(wasm.writeParquet(wasm.Table.fromIPCStream(rows), built.build()), rows);
    });
  } catch (error) {
    if (error instanceof FactorFlowError) throw error;
    throw new DataError(`the Parquet encoder refused the data: ${messageOf(error)}`, {
      phase: 'write',
      file,
      cause: error,
    });
  }
}

/** Number of rows sampled to find repeating columns, and the share of them that must repeat. */
const SAMPLED_ROWS = 4096;
const MOSTLY = 7 / 8;

/**
 * Number columns in which most rows repeat the row before, such as sorted ids. They need no dictionary: a
 * codec alone stores them as small as dictionary codes, in a quarter of the time.
 */
function repeatingColumns(stream: Uint8Array): string[] {
  const reader = RecordBatchReader.from(stream);
  const first = reader.next();
  if (first.done || first.value.numRows < SAMPLED_ROWS) return [];
  const { children } = first.value.data;
  return first.value.schema.fields
    .filter(({ type }, i) => (DataType.isInt(type) || DataType.isFloat(type)) && repeats(children[i]))
    .map(({ name }) => name);
}

function repeats({ values, nullCount }: Data): boolean {
  let same = 0;
  for (let row = 1; row < SAMPLED_ROWS; row++) if (values[row] === values[row - 1]) same++;
  return nullCount === 0 && same >= MOSTLY * SAMPLED_ROWS;
}

/** Numbers of fields in parquet.thrift. */
const [SCHEMA, CHILDREN, LOGICAL_TYPE, UUID] = [2, 5, 10, 14];

/**
 * Marks a file's UUIDs as Parquet's logical type UUID; the encoder does not know Arrow's extension type. `rows`:
 * the encoded rows as an Arrow IPC stream.
 */
function withUuids(file: Uint8Array, rows: Uint8Array): Uint8Array {
  const leaves = openIpc(rows).schema.fields.flatMap(leavesOf);
  if (!leaves.some(isUuidField)) return file;
  const { footer, start } = footerIn(file);
  const stored = structsIn(footer, SCHEMA).filter((element) => !integerIn(element, CHILDREN));
  for (const [i, element] of stored.entries())
    if (isUuidField(leaves[i])) element.set(LOGICAL_TYPE, thrift.struct({ [UUID]: thrift.struct({}) }));
  return joinBytes([file.subarray(0, start), encodeFooter(footer)]);
}

/** The fields that have values, in Parquet's order. */
function leavesOf(field: Field): Field[] {
  const type: DataType = field.type;
  if (DataType.isDictionary(type)) return [field];
  return type.children?.length ? type.children.flatMap(leavesOf) : [field];
}

const MILLISECONDS_OF_DAY = 86_400_000n;

/**
 * Rows with types that Parquet has. It has neither seconds nor dates of milliseconds: the encoder would store
 * them as bare integers, which only readers of Arrow's types know for times. Seconds become milliseconds, and
 * dates days, at any depth. Takes and returns an Arrow IPC stream; the same one if nothing changes. Throws
 * DataError for a value that does not fit.
 */
function storableRows(stream: Uint8Array, file: string): Uint8Array {
  const reader = openIpc(stream);
  const { schema } = reader;
  const refused = schema.fields.find(({ type }) => isRefused(type));
  if (refused !== undefined)
    throw new UsageError(`Parquet cannot hold ${String(refused.type)}`, {
      phase: 'write',
      file,
      column: refused.name,
      advice: 'Write Arrow instead, or leave the column out with drop',
    });
  const fields = schema.fields.map(storableField);
  if (fields.every((field, i) => field === schema.fields[i])) return stream;
  const rows = new RowStream(new Schema(fields, schema.metadata), false);
  for (const batch of reader) {
    const children = batch.data.children.map((data, i) => {
      try {
        return storableData(data, fields[i].type);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        throw new DataError(error.message, { phase: 'write', file, column: fields[i].name, cause: error });
      }
    });
    rows.add(batchOf(new Schema(fields), batch.numRows, children));
  }
  return rows.take();
}

/** Types without a counterpart in Parquet, on which the encoder breaks down. */
function isRefused(type: DataType): boolean {
  if (DataType.isInterval(type)) return type.unit === IntervalUnit.MONTH_DAY_NANO;
  return DataType.isUnion(type) || (type.children ?? []).some((field: Field) => isRefused(field.type));
}

function storableField(field: Field): Field {
  return mapInnermost(field, (inner) => {
    const type = storableType(inner.type);
    return type === inner.type ? inner : inner.clone({ type });
  });
}

function storableType(type: DataType): DataType {
  if (DataType.isTimestamp(type) && type.unit === TimeUnit.SECOND)
    return new Timestamp(TimeUnit.MILLISECOND, type.timezone);
  if (DataType.isDate(type) && type.unit === DateUnit.MILLISECOND) return new DateDay();
  if (DataType.isTime(type) && type.unit === TimeUnit.SECOND) return new TimeMillisecond();
  return type;
}

function storableData(data: Data, type: DataType): Data {
  if (data.type === type) return data;
  const { offset, length, nullCount, valueOffsets, nullBitmap } = data;
  const children = data.children.map((child, i) => storableData(child, type.children[i].type));
  const values = children.length > 0 ? undefined : storableValues(data);
  return new Data(
    type,
    offset,
    length,
    nullCount,
    { 0: valueOffsets, 1: values, 2: nullBitmap } as never,
    children,
  );
}

function storableValues(data: Data): BigInt64Array | Int32Array {
  const values = data.values as unknown as BigInt64Array | Int32Array;
  const isKnown = (row: number) => data.nullCount === 0 || data.getValid(row);
  const fitting = (row: number, bits: number, value: bigint) => {
    if (BigInt.asIntN(bits, value) === value) return value;
    if (!isKnown(row)) return 0n;
    throw new RangeError(`Parquet cannot hold the value ${values[row]} of ${String(data.type)}`);
  };
  if (DataType.isTimestamp(data.type))
    return BigInt64Array.from(values.subarray(0, data.length) as BigInt64Array, (seconds, row) =>
      fitting(row, 64, seconds * 1000n),
    );
  const isTime = DataType.isTime(data.type);
  return Int32Array.from({ length: data.length }, (_, row) => {
    const value = BigInt(values[row]);
    return Number(fitting(row, 32, isTime ? value * 1000n : floorDiv(value, MILLISECONDS_OF_DAY)));
  });
}

function floorDiv(value: bigint, by: bigint): bigint {
  return (value - (((value % by) + by) % by)) / by;
}
