import {
  Binary,
  Bool,
  DataType,
  DateDay,
  Field,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  makeData,
  Schema,
  Timestamp,
  TimeUnit,
  Uint16,
  Uint32,
  Uint64,
  Uint8,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import type { Data } from 'apache-arrow';
import type { ColumnChunkData } from 'parquetjs-lite';
import { DataError } from '../../../engine/errors.ts';
import type { SchemaElement } from '../footer.ts';

const timeUnits = { ms: TimeUnit.MILLISECOND, us: TimeUnit.MICROSECOND, ns: TimeUnit.NANOSECOND } as const;
/** Types of columns without a converted or logical type. */
const plainTypes: Partial<Record<string, DataType>> = {
  int32: new Int32(),
  int64: new Int64(),
  float: new Float32(),
  double: new Float64(),
  boolean: new Bool(),
  byte_array: new Binary(),
};
/** Types of integers by their converted type. */
const integerTypes: Partial<Record<string, DataType>> = {
  UINT_8: new Uint8(),
  UINT_16: new Uint16(),
  UINT_32: new Uint32(),
  UINT_64: new Uint64(),
  INT_8: new Int8(),
  INT_16: new Int16(),
  INT_32: new Int32(),
  INT_64: new Int64(),
  DATE: new DateDay(),
};
const textTypes = ['UTF8', 'ENUM', 'JSON'];

/**
 * The Arrow schema of a file of flat columns. Throws DataError for the first column that is not supported.
 */
export function flatSchema(elements: readonly SchemaElement[], file: string): Schema {
  return new Schema(
    elements.map((element) => {
      const type = element.children > 0 || element.repetition === 'repeated' ? undefined : flatType(element);
      if (type === undefined) {
        throw new DataError(
          `the backend parquetjs-lite cannot read columns of this kind (${kindOf(element)})`,
          { phase: 'read', file, column: element.name, advice: 'Use the backend parquet-wasm' },
        );
      }
      return new Field(element.name, type, element.repetition === 'optional');
    }),
  );
}

function kindOf({ children, repetition, physicalType }: SchemaElement): string {
  return children > 0 || repetition === 'repeated' ? 'nested' : (physicalType ?? 'unknown');
}

function flatType({
  physicalType = '',
  convertedType,
  logicalType,
  timestamp,
}: SchemaElement): DataType | undefined {
  if (physicalType === 'int64' && timestamp !== undefined)
    return new Timestamp(timeUnits[timestamp.unit], timestamp.utc ? 'UTC' : null);
  if (convertedType === undefined && logicalType === undefined) return plainTypes[physicalType];
  if (physicalType === 'int32' || physicalType === 'int64') return integerTypes[convertedType ?? ''];
  if (physicalType !== 'byte_array') return undefined;
  return textTypes.includes(convertedType ?? '') || logicalType === 'STRING' ? new Utf8() : undefined;
}

/**
 * One column of a row group as Arrow data. The library returns numbers of dictionary pages as strings; they
 * are parsed exactly. Throws DataError for a value of another kind.
 */
export function columnData(
  field: Field,
  chunk: ColumnChunkData,
  rows: number,
  place: { readonly file: string; readonly rowGroup: number },
): Data {
  const highest = field.nullable ? 1 : 0;
  const broken = (summary: string) =>
    new DataError(`parquetjs-lite read the column wrongly: ${summary}`, {
      phase: 'read',
      ...place,
      column: field.name,
      advice: 'Use the backend parquet-wasm',
    });
  const present = chunk.dlevels.reduce((sum, level) => sum + Number(level === highest), 0);
  if (chunk.dlevels.length !== rows) throw broken(`${chunk.dlevels.length} rows, need ${rows}`);
  if (chunk.values.length !== present) throw broken(`${chunk.values.length} values, need ${present}`);
  const value = decoder(field.type, broken);
  const type = field.type;
  if (DataType.isUtf8(type) || DataType.isBinary(type) || DataType.isBool(type)) {
    if (rows === 0) return new Vector([makeData({ type: new Utf8(), length: 0, nullCount: 0 })]).data[0];
    let next = 0;
    return vectorFromArray(
      Array.from(chunk.dlevels, (level) => (level === highest ? value(chunk.values[next++]) : null)),
      type,
    ).data[0];
  }
  return numberData(type, chunk, highest, value);
}

function numberData(
  type: DataType,
  chunk: ColumnChunkData,
  highest: number,
  value: (stored: unknown) => unknown,
): Data {
  const length = chunk.dlevels.length;
  const nullBitmap = new Uint8Array(Math.ceil(length / 8));
  const data = new type.ArrayType(length);
  let next = 0;
  for (let row = 0; row < length; row++) {
    if (chunk.dlevels[row] !== highest) continue;
    data[row] = value(chunk.values[next++]);
    nullBitmap[row >> 3] |= 1 << (row & 7);
  }
  const nullCount = length - next;
  return makeData({
    type: type as Int32,
    length,
    nullCount,
    nullBitmap: nullCount > 0 ? nullBitmap : undefined,
    data,
  });
}

/** Returns a function that checks one stored value and converts it to the type. */
function decoder(type: DataType, broken: (summary: string) => DataError): (stored: unknown) => unknown {
  const wrong = (stored: unknown) =>
    broken(`${typeof stored} ${String(stored)} where the schema has ${String(type)}`);
  if (DataType.isUtf8(type)) return (stored) => text(stored, wrong);
  if (DataType.isBinary(type)) {
    // The library returns bytes of a dictionary page as text, which may have lost some of them.
    return (stored) => (stored instanceof Uint8Array ? stored : fail(wrong(stored)));
  }
  if (DataType.isBool(type)) return (stored) => (typeof stored === 'boolean' ? stored : fail(wrong(stored)));
  if (type.ArrayType === BigInt64Array || type.ArrayType === BigUint64Array)
    return (stored) => wideInteger(stored, wrong);
  if (DataType.isFloat(type)) return (stored) => float(stored, wrong);
  // Unsigned integers are stored as signed numbers of the same bits; typed arrays convert them back.
  return (stored) => {
    const number = typeof stored === 'string' ? Number(stored) : stored;
    return typeof number === 'number' && Number.isInteger(number) && stored !== ''
      ? number
      : fail(wrong(stored));
  };
}

function wideInteger(stored: unknown, wrong: (stored: unknown) => DataError): bigint {
  if (typeof stored === 'bigint') return stored;
  return typeof stored === 'string' && /^-?\d+$/.test(stored) ? BigInt(stored) : fail(wrong(stored));
}

function float(stored: unknown, wrong: (stored: unknown) => DataError): number {
  if (typeof stored === 'number') return stored;
  if (stored === 'NaN') return Number.NaN;
  const number = typeof stored === 'string' && stored !== '' ? Number(stored) : Number.NaN;
  return Number.isNaN(number) ? fail(wrong(stored)) : number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function text(stored: unknown, wrong: (stored: unknown) => DataError): string {
  // U+FFFD in text from a dictionary page may mean that bytes were lost.
  if (typeof stored === 'string') return stored.includes('\uFFFD') ? fail(wrong(stored)) : stored;
  if (!(stored instanceof Uint8Array)) return fail(wrong(stored));
  try {
    return utf8.decode(stored);
  } catch {
    return fail(wrong('bytes that are not UTF-8'));
  }
}

function fail(error: DataError): never {
  throw error;
}
