import {
  Data,
  DataType,
  DateDay,
  DateUnit,
  type Field,
  IntervalUnit,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  TimeMillisecond,
  Timestamp,
  TimeUnit,
} from 'apache-arrow';
import { DataError, UsageError } from '../../../engine/errors.ts';
import { mapInnermost } from '../../../engine/values/map-fields.ts';
import { RowStream } from '../../../engine/stream/ipc-bytes.ts';
import { openIpc } from '../../../engine/stream/read-ipc.ts';

const MILLISECONDS_OF_DAY = 86_400_000n;

/**
 * Rows with types that Parquet has. It has neither seconds nor dates of milliseconds: the encoder would store
 * them as bare integers, which only readers of Arrow's types know for times. Seconds become milliseconds, and
 * dates days, at any depth. Takes and returns an Arrow IPC stream; the same one if nothing changes. Throws
 * DataError for a value that does not fit.
 */
export function storableRows(stream: Uint8Array, file: string): Uint8Array {
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
    const type = new Struct(fields);
    rows.add(
      new RecordBatch(new Schema(fields), makeData({ type, length: batch.numRows, nullCount: 0, children })),
    );
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
